// Calls a gRPC server with grpc-go: `grpc-go ADDRESS FOLDER [CA]`. The folder has requests of ModelInfer as bytes. Prints
// a line for each check, and exits with 1 at the first one that fails.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const service = "/inference.GRPCInferenceService/"

// Messages are bytes.
type raw struct{}

func (raw) Name() string                       { return "proto" }
func (raw) Marshal(value any) ([]byte, error)  { return *value.(*[]byte), nil }
func (raw) Unmarshal(bytes []byte, to any) error {
	*to.(*[]byte) = append([]byte(nil), bytes...)
	return nil
}

func check(what string, err error) {
	if err != nil {
		fmt.Printf("FAILED %s: %v\n", what, err)
		os.Exit(1)
	}
	fmt.Println("ok", what)
}

type client struct{ connection *grpc.ClientConn }

func (c client) infer(ctx context.Context, request []byte) ([]byte, error) {
	var reply []byte
	err := c.connection.Invoke(ctx, service+"ModelInfer", &request, &reply)
	return reply, err
}

func (c client) many(request []byte, count, atOnce int) error {
	first, err := c.infer(context.Background(), request)
	if err != nil {
		return err
	}
	var group sync.WaitGroup
	failures := make(chan error, count)
	for caller := 0; caller < atOnce; caller++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for call := 0; call < count/atOnce; call++ {
				reply, err := c.infer(context.Background(), request)
				if err == nil && !bytes.Equal(reply, first) {
					err = fmt.Errorf("the reply has %d bytes, not %d", len(reply), len(first))
				}
				if err != nil {
					failures <- err
					return
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	return <-failures
}

func (c client) stream(request []byte, count int) error {
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := c.connection.NewStream(context.Background(), desc, service+"ModelStreamInfer")
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		for message := 0; message < count; message++ {
			if err := stream.SendMsg(&request); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseSend()
	}()
	received := 0
	for {
		var reply []byte
		err := stream.RecvMsg(&reply)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		received++
	}
	if err := <-sent; err != nil {
		return err
	}
	if received != count {
		return fmt.Errorf("%d responses to %d requests", received, count)
	}
	return nil
}

func expect(err error, code codes.Code) error {
	if status.Code(err) == code {
		return nil
	}
	return fmt.Errorf("%v, not %v: %w", status.Code(err), code, err)
}

func main() {
	address, folder := os.Args[1], os.Args[2]
	security := insecure.NewCredentials()
	if len(os.Args) > 3 {
		read, err := credentials.NewClientTLSFromFile(os.Args[3], "localhost")
		check("certificate", err)
		security = read
	}
	const maxSize = 64 << 20
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(security), grpc.WithDefaultCallOptions(
		grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(maxSize), grpc.MaxCallSendMsgSize(maxSize)))
	check("client", err)
	defer connection.Close()
	c := client{connection}
	read := func(name string) []byte {
		bytes, err := os.ReadFile(filepath.Join(folder, name))
		check("read "+name, err)
		return bytes
	}
	small, large, slow := read("small"), read("large"), read("slow")
	check("2,000 small calls, 50 at a time", c.many(small, 2000, 50))
	check("16 large calls, 4 at a time", c.many(large, 16, 4))
	check("a stream of 500 small messages", c.stream(small, 500))
	check("a stream of 10 large messages", c.stream(large, 10))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	_, err = c.infer(ctx, slow)
	cancel()
	check("a deadline", expect(err, codes.DeadlineExceeded))
	for call := 0; call < 200; call++ {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			_, err := c.infer(ctx, slow)
			ended <- err
		}()
		cancel()
		if err := expect(<-ended, codes.Canceled); err != nil {
			check("cancelled calls", err)
		}
	}
	check("200 cancelled calls", nil)
	var reply []byte
	err = connection.Invoke(context.Background(), service+"Unknown", &small, &reply)
	check("an unknown method", expect(err, codes.Unimplemented))
	check("small calls after that", c.many(small, 100, 10))
}

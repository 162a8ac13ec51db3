// An API server of Kubernetes and its etcd in one program, for kubernetes.test.ts. ApiServerBuild.ts compiles it.
//
// usage: apiserver DATA URL FLAG…, with the folder and the URL of etcd, and flags of kube-apiserver
package main

import (
	"fmt"
	"net/url"
	"os"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 3 {
		// Such as --version.
		os.Exit(cli.Run(app.NewAPIServerCommand()))
	}
	data, client := os.Args[1], os.Args[2]
	etcd, err := startEtcd(data, client)
	if err != nil {
		fmt.Fprintln(os.Stderr, "etcd does not start:", err)
		os.Exit(1)
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(append([]string{"--etcd-servers=" + client}, os.Args[3:]...))
	code := cli.Run(command)
	etcd.Close()
	os.Exit(code)
}

func startEtcd(data, client string) (*embed.Etcd, error) {
	listen, err := url.Parse(client)
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = data
	config.LogLevel = "error"
	config.ListenClientUrls = []url.URL{*listen}
	config.AdvertiseClientUrls = []url.URL{*listen}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	// The data does not outlive a test.
	config.UnsafeNoFsync = true
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case <-time.After(time.Minute):
		return nil, fmt.Errorf("it is not ready after a minute")
	}
}

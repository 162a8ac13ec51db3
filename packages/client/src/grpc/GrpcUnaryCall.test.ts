/** Replies that arrive in parts, from a scripted server. */
import { once } from "node:events"
import { createServer, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo } from "node:net"
import { setImmediate as nextTurn } from "node:timers/promises"
import { create, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "vitest"
import { frame } from "@nereid/core/internal/grpc/GrpcFrame"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import { ModelInferResponseSchema } from "@nereid/protocol/grpc_service"
import * as Client from "../Client.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.scalar("FP32") },
  outputs: { Y: Tensor.FP32("n") },
}) {}

const replyOf = (Y: Float32Array) =>
  frame(
    toBinary(
      ModelInferResponseSchema,
      create(ModelInferResponseSchema, {
        modelName: "echo",
        modelVersion: "1",
        outputs: [{ name: "Y", datatype: "FP32", shape: [BigInt(Y.length)] }],
        rawOutputContents: [new Uint8Array(Y.buffer)],
      }),
    ),
  )

/** Answers with the reply in two parts, each of which is a read of the client. */
const serve = (reply: Uint8Array, cut: number) =>
  createServer().on("stream", (stream: ServerHttp2Stream) => {
    stream.on("error", () => {}).resume()
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }))
    stream.write(reply.subarray(0, cut), async () => {
      // The acknowledgement of a ping says that the client has read what was sent before.
      await new Promise((resolve) => stream.session?.ping(resolve))
      stream.end(reply.subarray(cut))
    })
  })

it.each([1, 3, 4, 5, 6, 8000])("reads a reply of 16 KiB that is cut after %d bytes", async (cut) => {
  const Y = Float32Array.from({ length: 4_088 }, (_, index) => index)
  const server = serve(replyOf(Y), cut).listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  {
    await using client = await Client.connect(Echo, { url: `grpc://127.0.0.1:${port}` })
    const output = await client.infer({ X: 1 })
    await nextTurn()
    expect(output.Y.data).toEqual(Y)
  }
  server.close()
})

/** Streams from a scripted server, which can behave like servers of other vendors. */
import { once } from "node:events"
import { constants, createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2"
import type { AddressInfo } from "node:net"
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { expect, it } from "vitest"
import * as Model from "@nereid/core/Model"
import * as Tensor from "@nereid/core/Tensor"
import { ModelStreamInferResponseSchema } from "@nereid/protocol/grpc_service"
import * as Client from "../Client.ts"

class Count extends Model.Service<Count>()("count", {
  inputs: {},
  outputs: { N: Tensor.scalar("INT32") },
}) {}

type Handler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, calls: number) => void

/** Reads a stream from a server with this handler. Returns the numbers, and the failure if there is one. */
const read = async (handler: Handler, options: Partial<Client.ClientOptions> = {}) => {
  const server = createServer()
  let calls = 0
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {})
    stream.resume()
    handler(stream, headers, ++calls)
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const { port } = server.address() as AddressInfo
  const seen: Array<number | string> = []
  {
    await using client = await Client.connect(Count, { url: `grpc://127.0.0.1:${port}`, ...options })
    try {
      for await (const { N } of client.stream({})) seen.push(N)
    } catch (error) {
      seen.push(String(error).replace(String(port), "PORT"))
    }
  }
  server.close()
  return seen
}

const framed = (init: MessageInitShape<typeof ModelStreamInferResponseSchema>, flag = 0) => {
  const message = toBinary(ModelStreamInferResponseSchema, create(ModelStreamInferResponseSchema, init))
  const prefix = Buffer.alloc(5)
  prefix[0] = flag
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

const number = (N: number, flag = 0) =>
  framed(
    {
      inferResponse: {
        modelName: "count",
        outputs: [{ name: "N", datatype: "INT32", shape: [1n] }],
        rawOutputContents: [new Uint8Array(Int32Array.of(N).buffer)],
      },
    },
    flag,
  )

const respond = (stream: ServerHttp2Stream, trailers: IncomingHttpHeaders = { "grpc-status": "0" }) => {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true })
  stream.on("wantTrailers", () => stream.sendTrailers(trailers))
}

it("opens a stream for one call, and requests failures as its status", async () => {
  let received: unknown
  const got = await read((stream, headers) => {
    received = [headers[":path"], headers["triton_grpc_error"]]
    respond(stream)
    stream.end(number(1))
  })
  expect(got).toEqual([1])
  expect(received).toEqual(["/inference.GRPCInferenceService/ModelStreamInfer", "true"])
})

it("puts messages together, however they are cut", async () => {
  const all = Buffer.concat([1, 2, 3, 4].map((N) => number(N)))
  for (const size of [1, 3, 7, all.length - 1]) {
    const got = await read(async (stream) => {
      respond(stream)
      for (let at = 0; at < all.length; at += size) {
        await new Promise((resolve) => stream.write(all.subarray(at, at + size), resolve))
      }
      stream.end()
    })
    expect(got).toEqual([1, 2, 3, 4])
  }
})

it("takes a failure in band, as servers send it that know no other way", async () => {
  const got = await read((stream) => {
    respond(stream)
    stream.end(Buffer.concat([number(1), framed({ errorMessage: "Exceeds maximum queue size" }), number(2)]))
  })
  expect(got).toEqual([1, "QueueFull: Exceeds maximum queue size"])
})

it("takes the status of trailers behind the messages, and of headers alone", async () => {
  const failed = { "grpc-status": "3", "grpc-message": "no such thing" }
  expect(
    await read((stream) => {
      respond(stream, failed)
      stream.end(number(1))
    }),
  ).toEqual([1, "InvalidRequest: no such thing"])
  expect(
    await read((stream) =>
      stream.respond({ ":status": 200, "content-type": "application/grpc", ...failed }, { endStream: true }),
    ),
  ).toEqual(["InvalidRequest: no such thing"])
})

it("is sent once more where the stream is refused, and no more than that", async () => {
  const refusing = (times: number) => (stream: ServerHttp2Stream, _: unknown, calls: number) => {
    if (calls <= times) return stream.close(constants.NGHTTP2_REFUSED_STREAM)
    respond(stream)
    stream.end(number(calls))
  }
  expect(await read(refusing(1))).toEqual([2])
  expect(await read(refusing(2))).toEqual([expect.stringMatching(/^Unavailable: /)])
})

const odd: ReadonlyArray<readonly [string, (stream: ServerHttp2Stream) => void, ReadonlyArray<unknown>]> = [
  [
    "a compressed message",
    (stream) => stream.end(Buffer.concat([number(1), number(2, 1)])),
    [1, "ExecutionFailed: the server sent a compressed message, but the client accepts no compression"],
  ],
  [
    "a message beyond the limit",
    (stream) => stream.write(Buffer.from([0, 0, 1, 0, 0])),
    ["ExecutionFailed: a response has 65536 bytes, but maxResponseSize is 1000"],
  ],
  [
    "half a message",
    (stream) => stream.end(number(1).subarray(0, 20)),
    ["ExecutionFailed: the server's last message is not complete"],
  ],
  [
    "half a prefix",
    (stream) => stream.end(number(1).subarray(0, 3)),
    ["ExecutionFailed: the server's last message is not complete"],
  ],
  [
    "what is no message",
    (stream) => stream.end(Buffer.from([0, 0, 0, 0, 2, 255, 255])),
    [expect.stringMatching(/^ExecutionFailed: cannot decode the server's response: /)],
  ],
  [
    "another output than declared",
    (stream) =>
      stream.end(
        framed({
          inferResponse: {
            outputs: [{ name: "N", datatype: "FP32", shape: [1n] }],
            rawOutputContents: [new Uint8Array(4)],
          },
        }),
      ),
    ["ExecutionFailed: output 'N' of model 'count' in the server's response: expected INT32[1], got FP32[1]"],
  ],
  [
    "a reset",
    (stream) => stream.write(number(1), () => stream.close(constants.NGHTTP2_INTERNAL_ERROR)),
    [1, "ExecutionFailed: the server reset the call with HTTP/2 error code 2"],
  ],
  [
    "the end of the connection",
    (stream) => stream.write(number(1), () => stream.session?.destroy()),
    [1, expect.stringMatching(/^Unavailable: /)],
  ],
]

it.each(odd)("%s ends it with a failure", async (_, act, expected) => {
  const got = await read(
    (stream) => {
      respond(stream)
      act(stream)
    },
    { maxResponseSize: 1000 },
  )
  expect(got).toEqual(expected)
})

/** Bodies without an end, over a real socket: each case awaits the moment at which the server closes the connection. */
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Model, Tensor } from "@nereid/core"
import { serve } from "../http/HttpInfer.fixture.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32(1) },
  outputs: { X: Tensor.FP32(1) },
}) {}

const layer = Model.each(Echo, (sample) => Effect.succeed(sample))

const infer = "POST /v2/models/echo/infer HTTP/1.1\r\nhost: x\r\n"

/** Sends `head`, then `part` for as long as the server reads. Returns what came, and the bytes that were taken. */
const sendEndlessly = (port: number, head: string, part: Uint8Array) =>
  Effect.callback<{ readonly text: string; readonly bytes: number }>((resume) => {
    let text = ""
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(head)
      more()
    })
    const more = () => {
      while (!socket.destroyed && socket.write(part));
    }
    socket.on("drain", more)
    socket.on("data", (chunk) => (text += chunk.toString("latin1")))
    socket.on("error", () => {})
    socket.on("close", () => resume(Effect.succeed({ text, bytes: socket.bytesWritten - socket.writableLength })))
    return Effect.sync(() => socket.destroy())
  })

const megabyte = 2 ** 20

it.live("a body beyond its limit is not read to its end", () =>
  Effect.gen(function* () {
    const { port } = yield* serve(layer, [Echo], { maxInputSize: 1000 })
    const head = `${infer}content-length: ${2 ** 40}\r\n\r\n`
    const { text, bytes } = yield* sendEndlessly(port, head, new Uint8Array(megabyte))
    assert.include(text, "400 Bad Request")
    assert.include(text, `request JSON size of ${2 ** 40} bytes exceeds the maximum allowed input size of 1000 bytes`)
    // The kernel's buffers hold the bytes that the server has not read.
    assert.isBelow(bytes, 100 * megabyte)
  }),
)

it.live("a body of too many chunks is not read to its end", () =>
  Effect.gen(function* () {
    const { port } = yield* serve(layer, [Echo])
    const part = Buffer.from("1\r\nx\r\n".repeat(10_000))
    const { text, bytes } = yield* sendEndlessly(port, `${infer}transfer-encoding: chunked\r\n\r\n`, part)
    assert.include(text, "Chunked request body exceeds maximum of 65536 non-empty chunks.")
    assert.isBelow(bytes, 100 * megabyte)
  }),
)

it.live("a client that sends the rest of its chunks reads the refusal, and the connection closes at their end", () =>
  Effect.gen(function* () {
    const { port } = yield* serve(layer, [Echo])
    const body = "1\r\nx\r\n".repeat(1_000_000)
    const text = yield* Effect.callback<string>((resume) => {
      let received = ""
      const socket = connect(port, "127.0.0.1", () =>
        socket.write(`${infer}transfer-encoding: chunked\r\n\r\n${body}0\r\n\r\n`),
      )
      socket.on("data", (chunk) => (received += chunk.toString("latin1")))
      socket.on("error", (error) => (received += error.message))
      socket.on("close", () => resume(Effect.succeed(received)))
    })
    assert.match(text, /^HTTP\/1.1 400 Bad Request\r\n.*\{"error":"Chunked request body exceeds [^{}]*"\}$/s)
  }),
)

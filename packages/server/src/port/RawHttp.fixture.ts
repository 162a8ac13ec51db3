/** Fixture of the tests of HTTP/1.1 on all ports of a server: conversations in bytes. */
import { connect, type Socket } from "node:net"
import { connect as connectTls } from "node:tls"
import { Model, Tensor } from "@nereid/core"
import { Deferred, Effect, Layer, Queue, type Scope, Stream } from "effect"
import * as Server from "../Server.ts"

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { X: Tensor.FP32(2) },
}) {}

/** Answers when the test opens it, one request at a time. */
class Gate extends Model.Service<Gate>()("gate", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { X: Tensor.FP32(2) },
}) {}

/** Sends one response, and another when the test opens it. */
class Words extends Model.Service<Words>()("words", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { WORD: Tensor.utf8() },
}) {}

const free = { host: "127.0.0.1", port: 0 }

/** Starts a server with all ports. `begun` and `ended` take an element for each request to a gated model. */
export const serve = Effect.fnUntraced(function* (options: Server.ServerOptions = {}) {
  const begun = yield* Queue.unbounded<void>()
  const ended = yield* Queue.unbounded<"interrupted" | "done">()
  const open = yield* Deferred.make<void>()
  const gated = Queue.offer(begun, undefined).pipe(
    Effect.andThen(Deferred.await(open)),
    Effect.onInterrupt(() => Queue.offer(ended, "interrupted")),
    Effect.tap(() => Queue.offer(ended, "done")),
  )
  const models = Layer.mergeAll(
    Model.each(Echo, (sample) => Effect.succeed(sample)),
    Model.each(Gate, (sample) => Effect.as(gated, sample)),
    Model.stream(Words, () =>
      Stream.concat(Stream.succeed({ WORD: "first" }), Stream.fromEffect(Effect.as(gated, { WORD: "second" }))),
    ),
  )
  const layer = Server.layer([Echo, Gate, Words], { http: free, grpc: free, port: free, metrics: free, ...options })
  const { http, grpc, port, metrics } = yield* Effect.provideContext(
    Server.Server,
    yield* Layer.build(Layer.provide(layer, models)),
  )
  const ports = { http: http?.port ?? 0, grpc: grpc?.port ?? 0, port: port?.port ?? 0, metrics: metrics?.port ?? 0 }
  return { ...ports, begun, ended, open }
})

export const body = JSON.stringify({ inputs: [{ name: "X", datatype: "FP32", shape: [2], data: [1, 2] }] })

/** A request to infer, in bytes. */
export const infer = (model: string, { head = "host: x\r\n", version = "1.1", route = "infer" } = {}): string => {
  const sent = route === "infer" ? body : '{"X":[1,2]}'
  return `POST /v2/models/${model}/${route} HTTP/${version}\r\n${head}content-length: ${sent.length}\r\n\r\n${sent}`
}

/** A connection that keeps what it has received. */
export interface Conversation {
  readonly socket: Socket
  readonly text: () => string
  /** Waits until the received text matches. */
  readonly until: (pattern: RegExp) => Effect.Effect<string>
  /** Waits for the end of the connection, and returns everything that was received. */
  readonly closed: Effect.Effect<string>
}

/**
 * Opens a connection and sends bytes, and with `end` FIN. Its other side stays open until the server closes it. With
 * `ca`, over TLS.
 */
export const converse = (
  port: number,
  bytes: string | Uint8Array,
  { end = false, ca }: { readonly end?: boolean; readonly ca?: string } = {},
): Effect.Effect<Conversation, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync((): Conversation => {
      let received = ""
      let isClosed = false
      const waiting = new Set<() => void>()
      const wake = () => waiting.forEach((check) => check())
      const address = { port, host: "127.0.0.1", allowHalfOpen: true }
      const send = () => (end ? socket.end(bytes) : socket.write(bytes))
      const socket = ca === undefined ? connect(address, send) : connectTls({ ...address, ca }, send)
      socket.on("data", (chunk) => {
        received += chunk.toString("latin1")
        wake()
      })
      socket.on("end", () => socket.end())
      socket.on("error", () => {})
      socket.on("close", () => {
        isClosed = true
        wake()
      })
      const when = (condition: () => boolean) =>
        Effect.callback<string>((resume) => {
          const check = () => {
            if (!condition()) return
            waiting.delete(check)
            resume(Effect.succeed(received))
          }
          waiting.add(check)
          check()
        })
      return {
        socket,
        text: () => received,
        until: (pattern) => when(() => pattern.test(received)),
        closed: when(() => isClosed),
      }
    }),
    ({ socket }) => Effect.sync(() => socket.destroy()),
  )

/** Sends bytes, and returns everything that comes until the server closes the connection. */
export const exchange = (port: number, bytes: string | Uint8Array) =>
  Effect.scoped(Effect.flatMap(converse(port, bytes), ({ closed }) => closed))

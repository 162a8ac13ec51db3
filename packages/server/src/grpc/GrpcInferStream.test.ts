/** ModelStreamInfer over real sockets, with grpc-js and with Connect's own client. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { getEventListeners } from "node:events"
import { setImmediate } from "node:timers/promises"
import { gzipSync } from "node:zlib"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { createHandlerContext } from "@connectrpc/connect"
import * as grpc from "@grpc/grpc-js"
import { assert, describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Logger, Queue, Scope, Stream } from "effect"
import { Errors, Model, Tensor } from "@nereid/core"
import { GRPCInferenceService, type ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import * as Gateway from "../gateway/Gateway.ts"
import * as GrpcInferStream from "./GrpcInferStream.ts"
import * as GrpcServer from "./GrpcServer.ts"
import { clients, frame, rawCall, rawSession } from "./GrpcServer.fixture.ts"

/** Answers X; waits for the test to open the gate first where X is negative. */
class Once extends Model.Service<Once>()("once", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
}) {}

/** Model that responds with 0, 1, … X - 1. It then fails if X is negative, and does not end if X is 99. */
class Count extends Model.Service<Count>()("count", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

/** A mebibyte at a time, without end. */
class Bulk extends Model.Service<Bulk>()("bulk", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.UINT8(2 ** 20) },
  maxBatchSize: 4,
}) {}

const { modelStreamInfer, modelInfer } = GRPCInferenceService.method

const modelStreamInferPath = `/${GRPCInferenceService.typeName}/${modelStreamInfer.name}`

const harnessWith = Effect.fnUntraced(function* (fastInference: boolean) {
  const open = yield* Deferred.make<void>()
  const started = yield* Queue.unbounded<void>()
  const interrupted = yield* Queue.unbounded<void>()
  const produced = { count: 0 }
  const layers = Layer.mergeAll(
    Model.each(Once, ({ X }) => Effect.succeed({ Y: X })),
    Model.each(Gated, ({ X }) =>
      Queue.offer(started, undefined).pipe(
        Effect.andThen(Deferred.await(open)),
        Effect.as({ Y: X }),
        Effect.onInterrupt(() => Queue.offer(interrupted, undefined)),
      ),
    ),
    Model.stream(Bulk, () =>
      Stream.fromEffectRepeat(
        Effect.sync(() => {
          produced.count += 1
          return { Y: Tensor.make("UINT8", [2 ** 20], new Uint8Array(2 ** 20)) }
        }),
      ).pipe(Stream.ensuring(Queue.offer(interrupted, undefined))),
    ),
    Model.stream(Count, ({ X }) => {
      const numbers = Stream.fromIterable(Array.from({ length: Math.abs(X) }, (_, Y) => ({ Y })))
      if (X < 0) return Stream.concat(numbers, Stream.fail(new Errors.InvalidRequest({ message: "no way down" })))
      if (X !== 99) return numbers
      return Stream.concat(numbers, Stream.never).pipe(Stream.ensuring(Queue.offer(interrupted, undefined)))
    }),
  )
  const services = yield* Effect.all([Once, Gated, Count, Bulk]).pipe(Effect.provide(yield* Layer.build(layers)))
  const gateway = Gateway.make(ModelStore.of(services.map(({ model }) => model)), { id: "nereid", version: "0" })
  const scope = yield* Scope.fork(yield* Scope.Scope)
  const { port } = yield* GrpcServer.make(gateway, {
    host: "127.0.0.1",
    port: 0,
    stopTimeoutMillis: 30_000,
    fastInference,
  }).pipe(Scope.provide(scope))
  const drain = Effect.sync(() => gateway.beginDrain())
  yield* Effect.addFinalizer(() => drain)
  const stop = drain.pipe(Effect.andThen(Scope.close(scope, Exit.void)))
  const [once, gated, count] = services.map(({ model }) => model)
  assert(once !== undefined && gated !== undefined && count !== undefined)
  const authority = `http://127.0.0.1:${port}`
  return { port, authority, gateway, open, started, interrupted, produced, stop, once, gated, count }
})

type Init = MessageInitShape<typeof ModelInferRequestSchema>

const boolean = (value: boolean) => ({ parameterChoice: { case: "boolParam", value } }) as const

const requestOf = (modelName: string, x: number, more: Init = {}): Init => ({
  modelName,
  id: String(x),
  inputs: [{ name: "X", datatype: "INT32", shape: modelName === "gated" ? [1n] : [1n, 1n] }],
  rawInputContents: [new Uint8Array(Int32Array.of(x).buffer)],
  ...more,
})

const emptyFinal = { parameters: { triton_enable_empty_final_response: boolean(true) } }

interface Received {
  readonly id: string | undefined
  readonly y: number | undefined
  readonly error: string
  readonly final: unknown
}

interface End {
  readonly code: number
  readonly message: string
}

/** A stream of grpc-js: what to send, what came, and how it ended. */
const openStream = Effect.fnUntraced(function* (
  port: number,
  metadata: Record<string, string> = {},
  deadline?: number,
) {
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())),
    (client) => Effect.sync(() => client.close()),
  )
  const received = yield* Queue.unbounded<Received>()
  const ended = yield* Deferred.make<End>()
  const headers = new grpc.Metadata()
  for (const [name, value] of Object.entries(metadata)) headers.set(name, value)
  const call = client.makeBidiStreamRequest(
    modelStreamInferPath,
    (request: Init) => Buffer.from(toBinary(modelInfer.input, create(modelInfer.input, request))),
    (bytes) => fromBinary(modelStreamInfer.output, new Uint8Array(bytes)),
    headers,
    deadline === undefined ? {} : { deadline: Date.now() + deadline },
  )
  call.on("data", ({ errorMessage, inferResponse }) => {
    const [raw] = inferResponse?.rawOutputContents ?? []
    Queue.offerUnsafe(received, {
      id: inferResponse?.id,
      y: raw === undefined ? undefined : new Int32Array(new Uint8Array(raw).buffer)[0],
      error: errorMessage,
      final: inferResponse?.parameters["triton_final_response"]?.parameterChoice.value,
    })
  })
  call.on("error", () => {})
  call.on("status", ({ code, details }) => Effect.runSync(Deferred.succeed(ended, { code, message: details })))
  return { call, received, end: Deferred.await(ended), send: (request: Init) => Effect.sync(() => call.write(request)) }
})

const good = (id: string, y: number | undefined, final: boolean) => ({ id, y, error: "", final })

describe.each([true, false])("ModelStreamInfer, fastInference: %s", (fastInference) => {
  const harness = harnessWith(fastInference)

  it.live("C26: answers come in the order of the requests, failures among them, and the stream goes on", () =>
    Effect.gen(function* () {
      const { port } = yield* harness
      const { call, received, send, end } = yield* openStream(port)
      yield* send(requestOf("once", 1))
      yield* send(requestOf("nope", 2))
      yield* send(requestOf("once", 3, { rawInputContents: [new Uint8Array(3)] }))
      yield* send(requestOf("once", 4, { parameters: { triton_other: boolean(true) } }))
      yield* send(requestOf("once", 5, { rawInputContents: [] }))
      yield* send(requestOf("once", 6))
      call.end()
      expect(yield* Queue.takeN(received, 6)).toEqual([
        good("1", 1, true),
        { id: "2", y: undefined, error: "Request for unknown model: 'nope' is not found", final: true },
        {
          id: "3",
          y: undefined,
          error: "[request id: 3] input byte size mismatch for input 'X' for model 'once'. Expected 4, got 3",
          final: true,
        },
        expect.objectContaining({ id: "4", error: expect.stringContaining("parameter keys starting with 'triton_'") }),
        expect.objectContaining({
          id: "5",
          error: expect.stringContaining("unable to find data for input tensor 'X'"),
        }),
        good("6", 6, true),
      ])
      expect(yield* end).toMatchObject({ code: 0 })
    }),
  )

  it.live("C26: a slow answer holds back the later ones, and half-close waits for all", () =>
    Effect.gen(function* () {
      const { port, open, started } = yield* harness
      const { call, received, send, end } = yield* openStream(port)
      yield* send(requestOf("gated", 1))
      yield* Queue.take(started)
      for (let x = 2; x <= 1000; x++) yield* send(requestOf("once", x))
      call.end()
      yield* Deferred.succeed(open, undefined)
      const all = yield* Queue.takeN(received, 1000)
      expect(all.map(({ id }) => id)).toEqual(Array.from({ length: 1000 }, (_, index) => String(index + 1)))
      expect(yield* end).toMatchObject({ code: 0 })
    }),
  )

  it.live("requests are not read without end behind a slow answer", () =>
    Effect.gen(function* () {
      const { port, open, started, once } = yield* harness
      const { call, received, send, end } = yield* openStream(port)
      yield* send(requestOf("gated", 1))
      yield* Queue.take(started)
      for (let x = 2; x <= 3000; x++) yield* send(requestOf("once", x))
      for (let x = 3001; x <= 6000; x++) yield* send(requestOf("nope", x))
      // Nothing is read any more: two looks, many answers of another stream apart.
      const other = yield* openStream(port)
      let others = 0
      const look = Effect.gen(function* () {
        for (let x = 0; x < 20; x++) {
          yield* other.send(requestOf("once", x))
          yield* Queue.take(other.received)
          others += 1
        }
        return once.description.statistics.success.count - others
      })
      let [before, after] = [yield* look, yield* look]
      for (let tries = 0; (after === 0 || after > before) && tries < 100; tries++)
        [before, after] = [after, yield* look]
      expect(after).toBeLessThan(600)
      call.end()
      yield* Deferred.succeed(open, undefined)
      const all = yield* Queue.takeN(received, 6000)
      expect(all.map(({ id }) => Number(id))).toEqual(Array.from({ length: 6000 }, (_, index) => index + 1))
      expect(yield* end).toMatchObject({ code: 0 })
    }),
  )

  it.live("of large requests fewer are read, compressed ones too", () =>
    Effect.gen(function* () {
      const { authority, open, started, gated } = yield* harness
      const session = yield* rawSession({ authority })
      // 8 MiB each: the message, and its id once more as a text.
      const large = (x: number) => {
        const request = requestOf("gated", x, { id: `${x}${" ".repeat(4 * 2 ** 20)}` })
        return frame(gzipSync(toBinary(modelInfer.input, create(modelInfer.input, request))), 1)
      }
      const headers = { ":path": modelStreamInferPath, "grpc-encoding": "gzip" }
      const chunks = Array.from({ length: 12 }, (_, x) => large(x))
      const call = yield* Effect.forkChild(rawCall(session, { chunks, headers }), { startImmediately: true })
      yield* Queue.take(started)
      while (gated.life.pending() < 7) yield* Effect.promise(() => setImmediate())
      // The next one would have come long before so many calls are answered.
      const small = frame(toBinary(modelInfer.input, create(modelInfer.input, requestOf("once", 1))))
      for (let x = 0; x < 50; x++)
        yield* rawCall(session, { chunks: [small], headers: { ":path": modelStreamInferPath } })
      expect(gated.life.pending()).toBe(7)
      yield* Deferred.succeed(open, undefined)
      expect((yield* Fiber.join(call)).status).toBe("0")
      expect(gated.description.statistics.success.count).toBe(12)
    }),
  )

  it.live("C27: every response has a final flag; an empty final response comes only on request", () =>
    Effect.gen(function* () {
      const { port } = yield* harness
      const { call, received, send, end } = yield* openStream(port)
      yield* send(requestOf("count", 2))
      expect(yield* Queue.takeN(received, 2)).toEqual([good("2", 0, false), good("2", 1, false)])
      yield* send(requestOf("count", 1, emptyFinal))
      expect(yield* Queue.takeN(received, 2)).toEqual([good("1", 0, false), good("1", undefined, true)])
      yield* send(requestOf("count", 0, emptyFinal))
      expect(yield* Queue.take(received)).toEqual(good("0", undefined, true))
      yield* send(requestOf("once", 7, emptyFinal))
      expect(yield* Queue.take(received)).toEqual(good("7", 7, true))
      yield* send(requestOf("count", -1))
      expect(yield* Queue.takeN(received, 2)).toEqual([
        good("-1", 0, false),
        { id: "-1", y: undefined, error: "no way down", final: true },
      ])
      yield* send(
        requestOf("once", 8, {
          parameters: { triton_enable_empty_final_response: { parameterChoice: { case: "int64Param", value: 1n } } },
        }),
      )
      expect((yield* Queue.take(received)).error).toBe(
        "invalid value type for 'triton_enable_empty_final_response' parameter, expected bool_param.",
      )
      call.end()
      expect(yield* end).toMatchObject({ code: 0 })
    }),
  )

  it.live("C27: with triton_grpc_error, the first failure is the stream's own", () =>
    Effect.gen(function* () {
      const { port } = yield* harness
      const { received, send, end } = yield* openStream(port, { triton_grpc_error: "true" })
      yield* send(requestOf("once", 1))
      yield* send(requestOf("nope", 2))
      expect(yield* Queue.take(received)).toEqual(good("1", 1, true))
      expect(yield* end).toEqual({ code: 5, message: "Request for unknown model: 'nope' is not found" })
    }),
  )

  it.live("C28: a caller that cancels takes back what is queued and what runs", () =>
    Effect.gen(function* () {
      const { port, started, interrupted, gated, count } = yield* harness
      const { call, received, send, end } = yield* openStream(port)
      yield* send(requestOf("gated", 1))
      yield* Queue.take(started)
      yield* send(requestOf("gated", 2))
      yield* send(requestOf("count", 99))
      yield* Queue.take(received)
      const both = yield* Effect.forkChild(Queue.takeN(interrupted, 2))
      call.cancel()
      expect(yield* end).toMatchObject({ code: 1 })
      yield* Fiber.join(both)
      expect(gated.description.statistics.failures.CANCELED).toBeGreaterThan(0)
      expect([gated.life.pending(), count.life.pending(), count.description.statistics.failures.CANCELED]).toEqual([
        0, 0, 1,
      ])
    }),
  )

  it.live("C28: a deadline ends the stream and what runs for it", () =>
    Effect.gen(function* () {
      const { port, started, interrupted } = yield* harness
      const { send, end } = yield* openStream(port, {}, 100)
      yield* send(requestOf("gated", 1))
      yield* Queue.take(started)
      expect(yield* end).toMatchObject({ code: 4 })
      yield* Queue.take(interrupted)
    }),
  )

  it.live("C28: a deadline that the queue sees first ends the stream too, with no answer in band", () =>
    Effect.gen(function* () {
      const { gateway } = yield* harness
      const requests = async function* () {
        yield create(modelInfer.input, requestOf("once", 1))
      }
      const init = { service: GRPCInferenceService, method: modelStreamInfer, protocolName: "grpc" }
      const context = createHandlerContext({ ...init, requestMethod: "POST", url: "http://localhost" })
      const options = { gateway, forward: undefined, toError: ({ _tag }: Errors.InferenceError) => new Error(_tag) }
      const responses = GrpcInferStream.serve(options, requests(), { ...context, timeoutMs: () => 0 })
      yield* Effect.promise(() => expect(responses.next()).rejects.toThrow("DeadlineExceeded"))
    }),
  )

  it.live("a reader that takes nothing slows a model without end", () =>
    Effect.gen(function* () {
      const { port, produced, interrupted, gateway } = yield* harness
      const { call, send, received } = yield* openStream(port)
      yield* send(requestOf("bulk", 99))
      yield* Queue.take(received)
      call.pause()
      // Once windows and buffers are full nothing is produced any more: two looks, many answers of another stream
      // apart.
      const other = yield* openStream(port)
      const look = Effect.gen(function* () {
        for (let x = 0; x < 20; x++) {
          yield* other.send(requestOf("once", x))
          yield* Queue.take(other.received)
        }
        return produced.count
      })
      let [before, after] = [yield* look, yield* look]
      for (let tries = 0; after > before && tries < 100; tries++) [before, after] = [after, yield* look]
      expect(after).toBe(before)
      call.cancel()
      yield* Queue.take(interrupted)
      // Only the other stream waits for a stop: this one is gone, though what it wrote last was never taken.
      expect(getEventListeners(gateway.endingStreams, "abort").length).toBe(1)
    }),
  )

  it.live("a stop lets what is in flight finish, and then ends the stream as unavailable", () =>
    Effect.gen(function* () {
      const { port, open, started, stop } = yield* harness
      const { received, send, end } = yield* openStream(port)
      yield* send(requestOf("gated", 1))
      yield* Queue.take(started)
      const stopped = yield* Effect.forkChild(stop, { startImmediately: true })
      yield* send(requestOf("once", 2))
      yield* Deferred.succeed(open, undefined)
      expect(yield* Queue.take(received)).toEqual(good("1", 1, true))
      expect(yield* end).toEqual({
        code: 14,
        message: "GRPC server is shutting down and has stopped accepting new requests.",
      })
      yield* Fiber.join(stopped)
    }),
  )

  it.live("a stream whose caller never ends its side ends with its answer, and holds up no stop", () =>
    Effect.gen(function* () {
      const { authority, stop } = yield* harness
      const session = yield* rawSession({ authority })
      const nope = frame(toBinary(modelInfer.input, create(modelInfer.input, requestOf("nope", 1))))
      const begin = (path: string, ...chunks: ReadonlyArray<Uint8Array>) => {
        const headers = { ":path": path, triton_grpc_error: "true" }
        return Effect.forkChild(rawCall(session, { chunks, headers, last: "nothing" }), { startImmediately: true })
      }
      const failed = yield* begin(modelStreamInferPath, nope)
      const infer = yield* begin(modelStreamInferPath)
      const reflection = yield* begin("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
      expect((yield* Fiber.join(failed)).status).toBe("5")
      yield* stop.pipe(Effect.timeout(20_000))
      expect((yield* Fiber.join(infer)).status).toBe("14")
      expect((yield* Fiber.join(reflection)).status).toBe("0")
    }),
  )

  it.live("a malformed message ends the stream with its status", () =>
    Effect.gen(function* () {
      const { port } = yield* harness
      const { call, end } = yield* openStream(port)
      const wire = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure())
      const broken = wire.makeBidiStreamRequest(
        modelStreamInferPath,
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
      )
      const status = yield* Effect.callback<number>((resume) => {
        broken.on("error", () => {})
        broken.on("data", () => {})
        broken.on("status", ({ code }) => resume(Effect.succeed(code)))
        broken.write(Buffer.from([0xff, 0xff]))
      })
      expect([3, 13]).toContain(status)
      wire.close()
      call.end()
      expect(yield* end).toMatchObject({ code: 0 })
    }),
  )

  it.live("a defect ends the stream with a general message, and is logged", () => {
    const logged: Array<unknown> = []
    const log = Logger.make(({ message }) => logged.push([message].flat(2)[0]))
    return Effect.gen(function* () {
      const { gateway } = yield* harness
      const broken: Gateway.Gateway = {
        ...gateway,
        stream: () => {
          throw new Error("a bug of this test")
        },
      }
      const { port } = yield* GrpcServer.make(broken, {
        host: "127.0.0.1",
        port: 0,
        stopTimeoutMillis: 1_000,
        fastInference,
      })
      const { send, end } = yield* openStream(port)
      yield* send(requestOf("once", 1))
      expect(yield* end).toEqual({ code: 13, message: "Internal server error; see the server log" })
      expect(logged).toEqual(["The gRPC front end failed on a call"])
    }).pipe(Effect.provide(Logger.layer([log])))
  })

  it.live.each(["reset", "nothing"] as const)(
    "a client that disconnects within a message is not a defect: %s",
    (last) => {
      const logged: Array<unknown> = []
      const log = Logger.make(({ message }) => logged.push([message].flat(2)[0]))
      return Effect.gen(function* () {
        const { gateway } = yield* harness
        const options = {
          host: "127.0.0.1",
          port: 0,
          stopTimeoutMillis: 1_000,
          receiveTimeoutMillis: 20,
          fastInference,
        }
        const { port } = yield* GrpcServer.make(gateway, options)
        const session = yield* rawSession({ authority: `http://127.0.0.1:${port}` })
        const headers = { ":path": modelStreamInferPath }
        const whole = frame(toBinary(modelInfer.input, create(modelInfer.input, requestOf("once", 1))))
        yield* rawCall(session, { chunks: [whole, whole.subarray(0, 20)], headers, last })
        expect((yield* rawCall(session, { chunks: [whole], headers })).status).toBe("0")
        expect(logged).toEqual([])
      }).pipe(Effect.provide(Logger.layer([log])))
    },
  )

  it.live("C25: unary calls of a decoupled model are refused, over gRPC and Connect", () =>
    Effect.gen(function* () {
      const server = yield* harness
      for (const name of ["grpc-js", "gRPC with gzip", "gRPC-Web", "Connect"] as const) {
        const call = yield* clients[name](server)
        expect(yield* call(modelInfer, requestOf("count", 1))).toEqual({
          code: 12,
          message: "ModelInfer RPC doesn't support models with decoupled transaction policy",
          tag: "Unsupported",
        })
      }
    }),
  )
})

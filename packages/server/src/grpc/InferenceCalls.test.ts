/** The path before Connect on an HTTP/2 implementation of the test's own, in memory. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf"
import { describe, expect, it, vi } from "@effect/vitest"
import { Deferred, Effect, Layer, Queue, Stream } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService, type ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import { ReceiveTimeout } from "./ReceiveTimeout.ts"
import { frame } from "./GrpcServer.fixture.ts"
import * as Gateway from "../gateway/Gateway.ts"
import * as InferenceCalls from "./InferenceCalls.ts"
import * as LateLoop from "../limit/LateLoop.fixture.ts"
import type { LateReading } from "../limit/LateReading.ts"
import * as CallRecord from "../log/CallRecord.ts"
import { MemoryCallStream } from "./MemoryCallStream.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 8,
}) {}

/** Answers when the test opens it. */
class Gated extends Model.Service<Gated>()("gated", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 1,
}) {}

/** Answers 0 after 5 ms, and others when the test opens it. */
class Slow extends Model.Service<Slow>()("slow", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 1,
}) {}

/** 0, 1, … without end. */
class Endless extends Model.Service<Endless>()("endless", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
}) {}

const { modelInfer, modelStreamInfer } = GRPCInferenceService.method
const unary = { ":path": `/${GRPCInferenceService.typeName}/${modelInfer.name}` }
const streaming = { ":path": `/${GRPCInferenceService.typeName}/${modelStreamInfer.name}` }

type Init = MessageInitShape<typeof ModelInferRequestSchema>

const requestFrame = (modelName: string, x: number, more: Init = {}): Uint8Array =>
  frame(
    toBinary(
      modelInfer.input,
      create(modelInfer.input, {
        modelName,
        id: String(x),
        inputs: [{ name: "X", datatype: "INT32", shape: modelName === "endless" ? [1n] : [1n, 1n] }],
        rawInputContents: [new Uint8Array(Int32Array.of(x).buffer)],
        ...more,
      }),
    ),
  )

const value = (raw: Uint8Array | undefined) => raw && new DataView(raw.buffer, raw.byteOffset).getInt32(0, true)

const unaryValue = (message: Uint8Array) => value(fromBinary(modelInfer.output, message).rawOutputContents[0])

const streamed = (message: Uint8Array) => {
  const { errorMessage, inferResponse } = fromBinary(modelStreamInfer.output, message)
  return errorMessage === "" ? value(inferResponse?.rawOutputContents[0]) : errorMessage
}

const harness = Effect.fnUntraced(function* (
  receiveTimeoutMillis = 10_000,
  maxMessageSize = 10_000,
  lateReading: LateReading | undefined = undefined,
) {
  const open = yield* Deferred.make<void>()
  const started = yield* Queue.unbounded<void>()
  const produced = { count: 0 }
  const layers = Layer.mergeAll(
    Model.each(Twice, ({ X }) => Effect.succeed({ Y: 2 * X })),
    Model.each(Gated, ({ X }) =>
      Queue.offer(started, undefined).pipe(Effect.andThen(Deferred.await(open)), Effect.as({ Y: X })),
    ),
    Model.each(Slow, ({ X }) =>
      X === 0
        ? Effect.delay(Effect.succeed({ Y: X }), "5 millis")
        : Queue.offer(started, undefined).pipe(Effect.andThen(Deferred.await(open)), Effect.as({ Y: X })),
    ),
    Model.stream(Endless, () => Stream.fromEffectRepeat(Effect.sync(() => ({ Y: produced.count++ })))),
  )
  const services = yield* Effect.all([Twice, Gated, Slow, Endless]).pipe(Effect.provide(yield* Layer.build(layers)))
  const [twice, gated, slow, endless] = services.map(({ model }) => model)
  if (twice === undefined || gated === undefined || slow === undefined || endless === undefined)
    throw new Error("no models")
  const gateway = Gateway.make(ModelStore.of([twice, gated, slow, endless]), {
    id: "nereid",
    version: "0",
    maxInFlightSize: 1e6,
    ...(lateReading && { lateReading }),
  })
  const defects: Array<unknown> = []
  const calls = InferenceCalls.make({
    gateway,
    maxMessageSize,
    receiveTimeout: new ReceiveTimeout(receiveTimeoutMillis),
    forward: undefined,
    records: yield* CallRecord.make(gateway),
    restrictedApis: () => undefined,
    responseCompression: "none",
    logDefect: (defect) => void defects.push(defect),
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => gateway.endStreams()))
  return { gateway, calls, twice, gated, slow, endless, open, started, produced, defects }
})

const ended = (call: MemoryCallStream) => Effect.promise(() => call.ended)

describe("unary", () => {
  it.live("answers a message in one piece, and in single bytes, without the end of the stream", () =>
    Effect.gen(function* () {
      const { calls, twice } = yield* harness()
      const whole = new MemoryCallStream(calls, unary)
      whole.write(requestFrame("twice", 4))
      const parts = new MemoryCallStream(calls, unary)
      for (const byte of requestFrame("twice", 5)) parts.write(Uint8Array.of(byte))
      expect([yield* ended(whole), yield* ended(parts)]).toEqual(["OK", "OK"])
      expect([whole, parts].map(({ sent }) => sent.map(unaryValue))).toEqual([[8], [10]])
      expect(twice.description.statistics.success.count).toBe(2)
    }),
  )

  it.live("a caller that goes away takes its request back", () =>
    Effect.gen(function* () {
      const { calls, gated, started, open } = yield* harness()
      const first = new MemoryCallStream(calls, unary)
      first.write(requestFrame("gated", 1))
      yield* Queue.take(started)
      const second = new MemoryCallStream(calls, unary)
      second.write(requestFrame("gated", 2))
      expect(gated.life.pending()).toBe(1)
      second.close()
      expect([gated.life.pending(), gated.description.statistics.failures.CANCELED]).toEqual([0, 1])
      yield* Deferred.succeed(open, undefined)
      expect(yield* ended(first)).toBe("OK")
      expect(second.ending).toBeUndefined()
    }),
  )

  it.live("is refused at its headers if it was read too late for its deadline", () =>
    Effect.gen(function* () {
      const { lateReading, acted } = LateLoop.make()
      const { calls, twice } = yield* harness(10_000, 10_000, lateReading)
      const late = new MemoryCallStream(calls, { ...unary, "grpc-timeout": "70m" })
      expect(yield* ended(late)).toMatchObject({ tag: "QueueFull", retryAfter: 100 })
      late.write(requestFrame("twice", 1))
      const [patient, early] = [undefined, "10S"].map((timeout) => {
        const call = new MemoryCallStream(calls, timeout === undefined ? unary : { ...unary, "grpc-timeout": timeout })
        call.write(requestFrame("twice", 2))
        return call
      })
      if (patient === undefined || early === undefined) throw new Error("There are two calls.")
      expect([yield* ended(patient), yield* ended(early)]).toEqual(["OK", "OK"])
      expect(acted).toEqual(["late_reading"])
      expect(twice.description.statistics.success.count).toBe(2)
    }),
  )

  it.live("is refused at its headers if its connection is behind by half of its time", () =>
    Effect.gen(function* () {
      const { calls, twice } = yield* harness()
      const send = (timeout: string, lag: number) => {
        const call = new MemoryCallStream(calls, { ...unary, "grpc-timeout": timeout }, undefined, lag)
        call.write(requestFrame("twice", 1))
        return ended(call)
      }
      expect(yield* send("10S", 6_000)).toMatchObject({ tag: "QueueFull", retryAfter: 100 })
      expect(yield* send("10S", 11_000)).toMatchObject({ tag: "DeadlineExceeded" })
      expect(yield* send("60S", 6_000)).toBe("OK")
      expect(twice.description.statistics.success.count).toBe(1)
    }),
  )

  it.live("is refused by its first bytes if the queue of its model is too long for its deadline", () =>
    Effect.gen(function* () {
      const { calls, slow, started, open, gateway } = yield* harness()
      const send = (x: number, timeout: string, length?: number) => {
        const call = new MemoryCallStream(calls, { ...unary, "grpc-timeout": timeout })
        call.write(requestFrame("slow", x).subarray(0, length))
        return call
      }
      for (let count = 0; count < 4; count++) expect(yield* ended(send(0, "10S"))).toBe("OK")
      const running = send(1, "10S")
      yield* Queue.take(started)
      const refusals = [send(2, "3m"), send(2, "3m", 20)]
      for (const call of refusals) {
        expect(yield* ended(call)).toMatchObject({ code: 14, tag: "QueueFull", retryAfter: expect.any(Number) })
        // The rest has no effect.
        call.write(requestFrame("slow", 2).subarray(20))
        call.halfClose()
        call.close()
      }
      const patient = send(3, "10S")
      yield* Deferred.succeed(open, undefined)
      expect([yield* ended(running), yield* ended(patient)]).toEqual(["OK", "OK"])
      expect(slow.description.statistics.failures.REJECTED).toBe(2)
      expect(gateway.memory.used).toBe(0)
    }),
  )

  it.live("is not answered if it was read too late and is cancelled already", () =>
    Effect.gen(function* () {
      const { lateReading } = LateLoop.make()
      const { calls } = yield* harness(10_000, 10_000, lateReading)
      const late = new MemoryCallStream(calls, { ...unary, "grpc-timeout": "1n" })
      late.close()
      yield* Effect.promise(() => Promise.resolve())
      expect(late.ending).toBeUndefined()
    }),
  )

  it.live("counts the time in the socket against the deadline", () =>
    Effect.gen(function* () {
      const { lateReading } = LateLoop.make()
      const { calls, started, gateway } = yield* harness(10_000, 10_000, lateReading)
      const infer = vi.spyOn(gateway, "infer")
      const before = MonotonicTime.millis()
      const call = new MemoryCallStream(calls, { ...unary, "grpc-timeout": "10S" })
      call.write(requestFrame("gated", 1))
      yield* Queue.take(started)
      const deadline = infer.mock.calls[0]?.[1] ?? 0
      expect(deadline).toBeGreaterThanOrEqual(before + 10_000 - 40)
      expect(deadline).toBeLessThanOrEqual(MonotonicTime.millis() + 10_000 - 40)
      call.close()
    }),
  )

  it.live("a deadline that passes is answered", () =>
    Effect.gen(function* () {
      const { calls, started } = yield* harness()
      const call = new MemoryCallStream(calls, { ...unary, "grpc-timeout": "30m" })
      call.write(requestFrame("gated", 1))
      yield* Queue.take(started)
      expect(yield* ended(call)).toMatchObject({ code: 4, tag: "DeadlineExceeded" })
    }),
  )

  it.live.each([-3_600_000, 3_600_000])("a jump of the wall clock by %d ms moves no deadline", (jump) =>
    Effect.gen(function* () {
      const { calls, started, open } = yield* harness()
      vi.useFakeTimers({ toFake: ["Date"] })
      yield* Effect.addFinalizer(() => Effect.sync(() => vi.useRealTimers()))
      const patient = new MemoryCallStream(calls, { ...unary, "grpc-timeout": "60S" })
      patient.write(requestFrame("gated", 1))
      yield* Queue.take(started)
      const hasty = new MemoryCallStream(calls, { ...unary, "grpc-timeout": "30m" })
      hasty.write(requestFrame("gated", 2))
      vi.setSystemTime(Date.now() + jump)
      expect(yield* ended(hasty)).toMatchObject({ code: 4, tag: "DeadlineExceeded" })
      yield* Deferred.succeed(open, undefined)
      expect(yield* ended(patient)).toBe("OK")
    }),
  )

  it.live("distinguishes a late, large, missing or second message, and an invalid timeout", () =>
    Effect.gen(function* () {
      const { calls } = yield* harness(15)
      const outcome = (headers: Record<string, string>, act: (call: MemoryCallStream) => void) => {
        const call = new MemoryCallStream(calls, { ...unary, ...headers })
        act(call)
        return ended(call)
      }
      expect(yield* outcome({}, (call) => call.write(requestFrame("twice", 1).subarray(0, 20)))).toMatchObject({
        code: 4,
        message: expect.stringMatching(/^the message did not arrive within 15 ms: 20 bytes including the prefix/),
      })
      expect(yield* outcome({}, () => {})).toMatchObject({ code: 4 })
      expect(yield* outcome({}, (call) => call.write(frame(new Uint8Array(0), 0, 10_001)))).toMatchObject({ code: 8 })
      expect(yield* outcome({}, (call) => call.halfClose())).toMatchObject({ code: 12 })
      const two = Buffer.concat([requestFrame("twice", 1), requestFrame("twice", 2)])
      expect(yield* outcome({}, (call) => call.write(two))).toMatchObject({ code: 12 })
      expect(yield* outcome({ "grpc-timeout": "soon" }, () => {})).toMatchObject({ code: 3 })
    }),
  )
})

describe("streams", () => {
  it.live("answers the requests of one chunk in order, with refusals, in one write", () =>
    Effect.gen(function* () {
      const { calls, twice } = yield* harness()
      const call = new MemoryCallStream(calls, streaming)
      call.write(Buffer.concat([1, 2, 3, 4].map((x) => requestFrame(x === 2 ? "nobody" : "twice", x))))
      call.halfClose()
      expect(yield* ended(call)).toBe("OK")
      expect(call.sent.map(streamed)).toEqual([2, "Request for unknown model: 'nobody' is not found", 6, 8])
      expect(call.writes).toBeLessThan(4)
      expect(twice.description.statistics.success.count).toBe(3)
    }),
  )

  it.live("a caller that takes nothing stops a model that goes on without end, until it does", () =>
    Effect.gen(function* () {
      const { calls, produced } = yield* harness()
      const call = new MemoryCallStream(calls, streaming)
      call.stopReading()
      call.write(requestFrame("endless", 1))
      yield* Effect.promise(() => call.messages(1))
      // Another call has its answer meanwhile, several times over.
      const settled = Effect.gen(function* () {
        for (let x = 0; x < 20; x++) {
          const other = new MemoryCallStream(calls, unary)
          other.write(requestFrame("twice", x))
          yield* ended(other)
        }
        return produced.count
      })
      const before = yield* settled
      expect(before).toBeLessThan(100)
      expect(yield* settled).toBe(before)
      const sent = call.sent.length
      call.startReading()
      yield* Effect.promise(() => call.messages(sent + 200))
      call.close()
      expect(call.sent.slice(0, 200).map(streamed)).toEqual(Array.from({ length: 200 }, (_, index) => index))
    }),
  )

  it.live("where many wait for an answer nothing more is read, and then everything", () =>
    Effect.gen(function* () {
      const { calls, gated, started, open } = yield* harness()
      const call = new MemoryCallStream(calls, streaming)
      for (let x = 0; x < 300; x++)
        call.write(Buffer.concat([requestFrame("gated", 2 * x), requestFrame("gated", 2 * x + 1)]))
      call.halfClose()
      yield* Queue.take(started)
      expect([call.paused, gated.life.pending()]).toEqual([true, 255])
      yield* Deferred.succeed(open, undefined)
      expect(yield* ended(call)).toBe("OK")
      expect(call.sent.map(streamed)).toEqual(Array.from({ length: 600 }, (_, index) => index))
    }),
  )

  it.live("one that disconnects cancels all its requests", () =>
    Effect.gen(function* () {
      const { calls, gated, endless, started } = yield* harness()
      const call = new MemoryCallStream(calls, streaming)
      call.write(Buffer.concat([requestFrame("gated", 1), requestFrame("gated", 2), requestFrame("endless", 3)]))
      yield* Queue.take(started)
      call.close()
      expect([gated.life.pending(), endless.life.pending()]).toEqual([0, 0])
      expect(gated.description.statistics.failures.CANCELED).toBe(2)
    }),
  )

  it.live("its deadline is its end, with what it had been answered", () =>
    Effect.gen(function* () {
      const { calls, started, gated } = yield* harness()
      const call = new MemoryCallStream(calls, { ...streaming, "grpc-timeout": "40m" })
      call.write(Buffer.concat([requestFrame("twice", 1), requestFrame("gated", 2)]))
      yield* Queue.take(started)
      expect(yield* ended(call)).toMatchObject({ code: 4, tag: "DeadlineExceeded" })
      expect(call.sent.map(streamed)).toEqual([2])
      expect(gated.life.pending()).toBe(0)
    }),
  )

  it.live("a message that stops in its middle is late, an idle stream is not", () =>
    Effect.gen(function* () {
      const { calls, gateway } = yield* harness(15)
      const idle = new MemoryCallStream(calls, streaming)
      const call = new MemoryCallStream(calls, streaming)
      call.write(Buffer.concat([requestFrame("twice", 1), requestFrame("twice", 2).subarray(0, 20)]))
      expect(yield* ended(call)).toMatchObject({ code: 4, message: expect.stringContaining("within 15 ms: 20 bytes") })
      expect(idle.ending).toBeUndefined()
      idle.write(requestFrame("twice", 3))
      idle.halfClose()
      expect(yield* ended(idle)).toBe("OK")
      expect(gateway.memory.used).toBe(0)
    }),
  )

  it.live("messages that are too large, cut off or none end it with a status", () =>
    Effect.gen(function* () {
      const { calls, defects } = yield* harness()
      const outcome = (bytes: Uint8Array) => {
        const call = new MemoryCallStream(calls, streaming)
        call.write(bytes)
        call.halfClose()
        return ended(call)
      }
      expect(yield* outcome(frame(new Uint8Array(0), 0, 10_001))).toMatchObject({ code: 8 })
      expect(yield* outcome(requestFrame("twice", 1).subarray(0, 20))).toMatchObject({ code: 3 })
      expect(yield* outcome(frame(Uint8Array.of(0xff)))).toMatchObject({ code: 13, tag: "MalformedRequest" })
      expect(defects).toEqual([])
    }),
  )

  it.live("a stop lets what is in flight finish, and then ends it as unavailable", () =>
    Effect.gen(function* () {
      const { calls, gateway, started, open } = yield* harness()
      const call = new MemoryCallStream(calls, streaming)
      call.write(requestFrame("gated", 1))
      yield* Queue.take(started)
      gateway.endStreams()
      yield* Deferred.succeed(open, undefined)
      expect(yield* ended(call)).toMatchObject({ code: 14, tag: "Unavailable" })
      expect(call.sent.map(streamed)).toEqual([1])
    }),
  )
})

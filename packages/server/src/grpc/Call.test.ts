/** The calls of inference without node:http2: what another implementation of HTTP/2 would have to do, in memory. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import { Model, Registry, Tensor } from "@nereid/core"
import { GRPCInferenceService, ModelInferRequestSchema } from "@nereid/protocol/grpc_service"
import { ReceiveBudget } from "../port/ReceiveBudget.ts"
import * as Gateway from "../Gateway.ts"
import type { CallMetadata, CallOptions, Responder } from "./Call.ts"
import { UnaryCall } from "./GrpcUnary.ts"
import type { GrpcStatus } from "./GrpcStatus.ts"
import { StreamCall } from "./StreamCall.ts"
import { frame } from "./GrpcServer.fixture.ts"

class Twice extends Model.Service<Twice>()("twice", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { Y: Tensor.scalar("INT32") },
  maxBatchSize: 64,
}) {}

const { modelInfer, modelStreamInfer } = GRPCInferenceService.method

const ask = (x: number, modelName = "twice") =>
  frame(
    toBinary(
      modelInfer.input,
      create(ModelInferRequestSchema, {
        modelName,
        id: String(x),
        inputs: [{ name: "X", datatype: "INT32", shape: [1n, 1n] }],
        rawInputContents: [new Uint8Array(Int32Array.of(x).buffer)],
      }),
    ),
  )

/** Keeps what is answered; takes so many writes before it wants to be waited for. */
class InMemory implements Responder {
  readonly frames: Array<Uint8Array> = []
  outcome: "OK" | GrpcStatus | undefined
  paused = false
  resumeWriting: (() => void) | undefined
  readonly #writes: number
  #ended = () => {}
  readonly ended = new Promise<void>((resolve) => (this.#ended = resolve))

  constructor(writes = Infinity) {
    this.#writes = writes
  }

  reply(bytes: Uint8Array): void {
    this.frames.push(bytes)
    this.end()
  }

  send(bytes: Uint8Array): boolean {
    this.frames.push(bytes)
    return this.frames.length < this.#writes
  }

  onceWritable(resume: () => void): void {
    this.resumeWriting = resume
  }

  end(): void {
    this.outcome = "OK"
    this.#ended()
  }

  fail(status: GrpcStatus): void {
    this.outcome = status
    this.#ended()
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
  }

  /** The messages of its frames, without their prefixes. */
  messages(): ReadonlyArray<Uint8Array> {
    const bytes = Buffer.concat(this.frames)
    const found: Array<Uint8Array> = []
    for (let at = 0; at < bytes.length;) {
      const end = at + 5 + bytes.readUInt32BE(at + 1)
      found.push(new Uint8Array(bytes.subarray(at + 5, end)))
      at = end
    }
    return found
  }

  ys(): ReadonlyArray<number> {
    return this.messages().map((message) => {
      const [raw = new Uint8Array(4)] =
        fromBinary(modelStreamInfer.output, message).inferResponse?.rawOutputContents ?? []
      return new Int32Array(new Uint8Array(raw).buffer)[0] ?? NaN
    })
  }
}

const harness = Effect.gen(function* () {
  const { model } = yield* Twice.pipe(Effect.provide(yield* Layer.build(Model.each(Twice, ({ X }) => ({ Y: 2 * X })))))
  const budget = new ReceiveBudget(1_000_000)
  const options: CallOptions = {
    gateway: Gateway.make(Registry.make([model]), { id: "nereid", version: "0" }),
    maxMessageSize: 10_000,
    receiveTimeoutMillis: 60_000,
    receiveBudget: budget,
    logDefect: (defect) => expect(defect).toBeUndefined(),
  }
  return { options, budget }
})

const metadata: CallMetadata = { timeout: undefined, endsAtError: false, prepare: Result.succeed }

const ended = (responder: InMemory) => Effect.promise(() => responder.ended)

/** As a socket would bring them, and as its reader may reuse nothing. */
const cut = (bytes: Uint8Array, size: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) => bytes.slice(index * size, (index + 1) * size))

describe("without node:http2", () => {
  it.live("a unary call is answered, wherever its bytes are cut", () =>
    Effect.gen(function* () {
      const { options } = yield* harness
      const bytes = ask(21)
      for (let size = 1; size <= bytes.length; size++) {
        const responder = new InMemory()
        const call = new UnaryCall(options, responder, metadata)
        for (const chunk of cut(bytes, size)) call.onData(chunk)
        call.onEnd()
        yield* ended(responder)
        call.onClose()
        const [reply = new Uint8Array(0)] = responder.messages()
        expect(new Uint8Array(fromBinary(modelInfer.output, reply).rawOutputContents[0] ?? [])).toEqual(
          new Uint8Array(Int32Array.of(42).buffer),
        )
      }
    }),
  )

  it.live("a stream is answered in its order, wherever its bytes are cut", () =>
    Effect.gen(function* () {
      const { options, budget } = yield* harness
      const bytes = Buffer.concat([ask(1), ask(2), ask(3, "nope"), ask(4)])
      for (let size = 1; size <= bytes.length; size++) {
        const responder = new InMemory()
        const call = new StreamCall(options, responder, metadata)
        for (const chunk of cut(bytes, size)) call.onData(chunk)
        call.onEnd()
        yield* ended(responder)
        call.onClose()
        expect([responder.outcome, responder.ys()]).toEqual(["OK", [2, 4, 0, 8]])
      }
      // Nothing is held once they are over.
      expect(budget.take(1_000_000)).toBe(undefined)
    }),
  )

  it.live("a message that is nothing but its prefix is one", () =>
    Effect.gen(function* () {
      const { options } = yield* harness
      for (const size of [1, 5, 10]) {
        const responder = new InMemory()
        const call = new StreamCall(options, responder, metadata)
        for (const chunk of cut(new Uint8Array(10), size)) call.onData(chunk)
        call.onEnd()
        yield* ended(responder)
        expect([responder.outcome, responder.messages().length]).toEqual(["OK", 2])
      }
    }),
  )

  it.live("what is ready together leaves together", () =>
    Effect.gen(function* () {
      const { options } = yield* harness
      const responder = new InMemory()
      const call = new StreamCall(options, responder, metadata)
      call.onData(Buffer.concat(Array.from({ length: 100 }, (_, x) => ask(x))))
      call.onEnd()
      yield* ended(responder)
      expect(responder.ys()).toEqual(Array.from({ length: 100 }, (_, x) => 2 * x))
      expect(responder.frames.length).toBeLessThan(100)
    }),
  )

  it.live("a caller that takes nothing gets nothing more, and is read no further", () =>
    Effect.gen(function* () {
      const { options } = yield* harness
      const responder = new InMemory(1)
      const call = new StreamCall(options, responder, metadata)
      call.onData(ask(0))
      yield* Effect.promise(() => expect.poll(() => responder.frames.length).toBe(1))
      let sent = 1
      while (!responder.paused) call.onData(ask(sent++))
      expect(sent).toBeLessThan(1_000)
      expect(responder.frames.length).toBe(1)
      call.onEnd()
      while (responder.outcome === undefined) {
        yield* Effect.promise(() => expect.poll(() => responder.resumeWriting ?? responder.outcome).toBeDefined())
        const resume = responder.resumeWriting
        responder.resumeWriting = undefined
        resume?.()
      }
      expect([responder.outcome, responder.paused]).toEqual(["OK", false])
      expect(responder.ys()).toEqual(Array.from({ length: sent }, (_, x) => 2 * x))
    }),
  )

  const broken: ReadonlyArray<readonly [string, Uint8Array, number]> = [
    ["a compressed flag", Uint8Array.of(1, 0, 0, 0, 0), 13],
    ["a flag that is none", Uint8Array.of(7, 0, 0, 0, 0), 13],
    ["a length above the limit", Uint8Array.of(0, 0, 0, 0x27, 0x11), 8],
    ["bytes that are no message", frame(Uint8Array.of(0xff, 0xff)), 13],
    ["half a message", ask(1).subarray(0, 12), 3],
  ]
  it.live.each(broken)("ends a stream: %s", ([, bytes, code]) =>
    Effect.gen(function* () {
      const { options, budget } = yield* harness
      const responder = new InMemory()
      const call = new StreamCall(options, responder, metadata)
      call.onData(bytes)
      call.onEnd()
      yield* ended(responder)
      expect(responder.outcome).toMatchObject({ code })
      expect(budget.take(1_000_000)).toBe(undefined)
    }),
  )

  it.live("more than all callers may hold together ends a stream, and is given back", () =>
    Effect.gen(function* () {
      const { options } = yield* harness
      const receiveBudget = new ReceiveBudget(300)
      const responder = new InMemory()
      const call = new StreamCall({ ...options, receiveBudget }, responder, metadata)
      call.onData(ask(1).subarray(0, 6))
      call.onData(ask(1).subarray(6, 7))
      yield* ended(responder)
      expect(responder.outcome).toMatchObject({ code: 8, tag: "QueueFull" })
      expect(receiveBudget.take(300)).toBe(undefined)
    }),
  )

  it.live("a message that takes too long ends a stream; a pause between messages does not", () =>
    Effect.gen(function* () {
      const { options } = yield* harness
      const responder = new InMemory()
      const call = new StreamCall({ ...options, receiveTimeoutMillis: 5 }, responder, metadata)
      call.onData(ask(1))
      yield* Effect.promise(() => expect.poll(() => responder.ys()).toEqual([2]))
      expect(responder.outcome).toBe(undefined)
      call.onData(ask(1).subarray(0, 6))
      yield* ended(responder)
      expect(responder.outcome).toMatchObject({
        code: 4,
        message: expect.stringContaining("did not arrive within 5 ms"),
      })
    }),
  )
})

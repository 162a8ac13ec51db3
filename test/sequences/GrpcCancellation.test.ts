/**
 * Callers of gRPC that cancel a request of a sequence, or close a stream in the middle of one: what ends, and the state
 * that the sequence has afterwards. docs/guides/sequences.md has the rules.
 */
import { describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Context, Effect, Layer } from "effect"
import { model, node, value, initializer } from "../fixtures/onnx.ts"
import * as sequences from "../fixtures/sequences.ts"
import { GrpcCalls } from "./GrpcCalls.ts"
import { type Flags, step } from "./Scenario.ts"
import { metric } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

/**
 * An INPUT whose execution lasts until the test opens the gate or its caller leaves; of an ONNX file, some tenths of a
 * second, whether its caller leaves or not.
 */
const slow = 2000

/** The same without regard to the caller. */
const stubborn = 2001

/** OUTPUT is the sum of all inputs of the sequence; the product of matrices as wide as the largest INPUT takes time. */
const slowSums = model({
  inputs: ["INPUT", "INPUT_STATE"].map((name) => value(name, "INT32", ["n", 1])),
  outputs: ["OUTPUT", "OUTPUT_STATE"].map((name) => value(name, "INT32", ["n", 1])),
  initializers: [initializer("one", "INT64", [1], BigInt64Array.of(1n))],
  nodes: [
    node("ReduceMax", ["INPUT"], ["largest"], { keepdims: 0 }),
    node("Cast", ["largest"], ["large"], { to: 7 }),
    node("Reshape", ["large", "one"], ["width"]),
    node("Concat", ["width", "width"], ["square"], { axis: 0 }),
    node("ConstantOfShape", ["square"], ["zeros"]),
    node("MatMul", ["zeros", "zeros"], ["product"]),
    node("MatMul", ["product", "zeros"], ["products"]),
    node("ReduceSum", ["products"], ["zero"], { keepdims: 0 }),
    node("Cast", ["zero"], ["nothing"], { to: 6 }),
    node("Add", ["INPUT", "INPUT_STATE"], ["sum"]),
    node("Add", ["sum", "nothing"], ["OUTPUT"]),
    node("Identity", ["OUTPUT"], ["OUTPUT_STATE"]),
  ],
})

/** Executions of a slow INPUT wait for it. */
let gate = Promise.withResolvers<void>()

const wait = (input: number, signal: AbortSignal): Promise<void> => {
  if (input < slow) return Promise.resolve()
  if (input === stubborn) return gate.promise
  const left = new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))
  return Promise.race([gate.promise, left])
}

// For the script.
Reflect.set(globalThis, "nereidWait", wait)

const script = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  export default ModelScript.define({
    execute: async (requests) => {
      for (const { inputs: { INPUT }, signal } of requests) await globalThis.nereidWait(INPUT.data[0], signal)
      return requests.map(({ inputs: { INPUT, INPUT_STATE } }) => {
        const sum = Tensor.make("INT32", INPUT.shape, Int32Array.of(INPUT.data[0] + INPUT_STATE.data[0]))
        return { OUTPUT: sum, OUTPUT_STATE: sum }
      })
    },
  })`

class Sums extends Model.Service<Sums>()("m", {
  inputs: { INPUT: Tensor.scalar("INT32") },
  outputs: { OUTPUT: Tensor.scalar("INT32") },
  maxBatchSize: 2,
  sequence: { state: { SUM: Tensor.scalar("INT32") } },
}) {}

const SumsLive = Model.sequence(Sums, ({ INPUT }, { state: { SUM } }) => {
  const answered = Effect.succeed({ outputs: { OUTPUT: SUM + INPUT }, state: { SUM: SUM + INPUT } })
  if (INPUT < slow) return answered
  const waited = Effect.andThen(
    Effect.promise(() => gate.promise),
    answered,
  )
  return INPUT === stubborn ? Effect.uninterruptible(waited) : waited
})

// Its stop waits for no open sequence.
const free = { host: "127.0.0.1", port: 0 }
const serverOptions = { http: free, grpc: free, metrics: free, drainTimeout: "10 millis" } as const

const inCode = Effect.gen(function* () {
  const layer = Server.layer([Sums], serverOptions).pipe(Layer.provide(SumsLive))
  const { http, grpc, metrics } = Context.get(yield* Layer.build(layer), Server.Server)
  return { http: http?.port ?? 0, grpc: grpc?.port ?? 0, metrics: metrics?.port ?? 0 }
})

const stored = (strategy: "direct" | "oldest", file: Readonly<Record<string, string | Uint8Array>>) => {
  const fields = strategy === "direct" ? "direct {}" : "oldest { max_candidate_sequences: 3 }"
  const config = sequences.config(`${fields} ${sequences.state()}`, { maxBatchSize: 2, idle: 60_000_000 })
  return serveFiles({ "m/config.pbtxt": config, ...file }, { server: serverOptions })
}

const onnx = { "m/1/model.onnx": slowSums }
const code = { "m/1/model.ts": script }

/**
 * `batches`: how many the instance takes at the same time. `keepsRunning`: whether an execution whose caller has left
 * goes on to its end, and leaves its state.
 */
const servers = [
  { name: "direct, ONNX", serve: stored("direct", onnx), isDirect: true, keepsRunning: true },
  { name: "oldest, ONNX", serve: stored("oldest", onnx), isDirect: false, keepsRunning: true, batches: 2 },
  { name: "direct, a script", serve: stored("direct", code), isDirect: true, keepsRunning: false },
  { name: "oldest, a script", serve: stored("oldest", code), isDirect: false, keepsRunning: false },
  { name: "a handler in code", serve: inCode, isDirect: false, keepsRunning: false, isInCode: true },
]

type Ports = Effect.Success<typeof inCode>

/** Polls a metric until it has the value. */
const until = (ports: Ports, name: string, labels: string, expected: number) =>
  Effect.repeat(metric(ports, name, labels), { until: (count) => (count ?? 0) === expected })

const pending = (ports: Ports, count: number) => until(ports, "nv_inference_pending_request_count", "", count)

/** Requests that have left the queue, and those that have left an instance. */
const cancelled = (ports: Ports, queue: number, instance: number) =>
  Effect.all([
    until(ports, "nereid_cancelled_rows", 'stage="queue"', queue),
    until(ports, "nereid_cancelled_rows", 'stage="instance"', instance),
  ])

/** Sequences that are live, and that were cancelled. */
const counts = (ports: Ports) =>
  Effect.all([metric(ports, "nereid_sequences_live"), metric(ports, "nereid_sequences_ended", 'reason="cancelled"')])

const open = (ports: Ports) =>
  Effect.acquireRelease(
    Effect.promise(() => GrpcCalls.open(ports.grpc, "m", true)),
    (calls) => Effect.sync(() => calls.close()),
  )

const served = (serve: (typeof servers)[number]["serve"], batches = 1) =>
  Effect.gen(function* () {
    gate = Promise.withResolvers()
    const ports = yield* serve
    yield* Effect.addFinalizer(() => Effect.sync(() => gate.resolve()))
    const calls = yield* open(ports)
    const send = (id: bigint, flags: Flags, input: number) => calls.unary(step(id, flags, input, 0))
    const answer = (id: bigint, flags: Flags, input: number) => Effect.promise(() => send(id, flags, input).answer)
    const begin = Effect.fnUntraced(function* (id: bigint, flags: Flags, input: number) {
      const running = send(id, flags, input)
      yield* Effect.promise(() => calls.read())
      yield* pending(ports, 0)
      return running
    })
    /** Begins a sequence for each batch that the only instance takes at the same time. */
    const occupy = Effect.forEach([11n, 12n].slice(0, batches), (id) => begin(id, "S", slow))
    return { ports, calls, send, answer, begin, occupy }
  })

const lost = (id: bigint) =>
  `inference request for sequence ${id} to model 'm' must specify the START flag on the first request of the sequence`

describe.each(servers)("$name", ({ serve, isDirect, keepsRunning, isInCode = false, batches = 1 }) => {
  it.live("a cancelled request that is executed ends no sequence", () =>
    Effect.gen(function* () {
      const { ports, answer, begin } = yield* served(serve, batches)
      expect(yield* answer(1n, "S", 1)).toBe(1)
      const running = yield* begin(1n, "", slow)
      running.cancel()
      expect(yield* Effect.promise(() => running.answer)).toBe("reset")
      yield* cancelled(ports, 0, 1)
      const before = keepsRunning ? 1 + slow : 1
      expect(yield* answer(1n, "", 10)).toBe(before + 10)
      expect(yield* answer(1n, "E", 5)).toBe(before + 15)
      expect(yield* counts(ports)).toEqual([0, 0])
    }),
  )

  it.live("a cancelled START that is executed has begun its sequence", () =>
    Effect.gen(function* () {
      const { ports, answer, begin } = yield* served(serve, batches)
      const running = yield* begin(1n, "S", slow)
      running.cancel()
      yield* cancelled(ports, 0, 1)
      expect(yield* answer(1n, "E", 3)).toBe(keepsRunning ? slow + 3 : 3)
    }),
  )

  it.live("an execution that ends although its caller has left leaves its state, but not that of code", () =>
    Effect.gen(function* () {
      const { ports, calls, send, answer, begin } = yield* served(serve, batches)
      expect(yield* answer(1n, "S", 1)).toBe(1)
      const running = yield* begin(1n, "", stubborn)
      running.cancel()
      yield* cancelled(ports, 0, 1)
      const last = send(1n, "E", 10)
      yield* Effect.promise(() => calls.read())
      gate.resolve()
      expect(yield* Effect.promise(() => last.answer)).toBe(isInCode ? 11 : stubborn + 11)
    }),
  )

  it.live("a cancelled request behind another of its sequence leaves with those behind it, and ends the sequence", () =>
    Effect.gen(function* () {
      const { ports, calls, send, answer, begin } = yield* served(serve, batches)
      const first = yield* begin(1n, "S", slow)
      const others = [send(1n, "", 2), send(1n, "", 3), send(1n, "E", 4)]
      yield* Effect.promise(() => calls.read())
      others[1]?.cancel()
      yield* cancelled(ports, 2, 0)
      expect(yield* answer(1n, "", 5)).toBe(lost(1n))
      gate.resolve()
      const answers = yield* Effect.promise(() => Promise.all([first, ...others].map((one) => one.answer)))
      expect(answers).toEqual([slow, slow + 2, "reset", "another request of sequence 1 to model 'm' was cancelled"])
      yield* until(ports, "nereid_sequences_live", "", 0)
      expect(yield* counts(ports)).toEqual([0, 1])
      // The id is free, and its next sequence begins anew.
      expect(yield* answer(1n, "SE", 7)).toBe(7)
      yield* Effect.promise(() => calls.read())
    }),
  )

  // L1.5.cancel-direct@gRPC
  it.live(
    `a cancelled request that is the next of its sequence ${isDirect ? "ends the sequence" : "leaves alone, and the sequence goes on"}`,
    () =>
      Effect.gen(function* () {
        const { ports, calls, send, answer, occupy } = yield* served(serve, batches)
        expect(yield* answer(2n, "S", 1)).toBe(1)
        const running = yield* occupy
        const next = send(2n, "", 20)
        yield* Effect.promise(() => calls.read())
        next.cancel()
        expect(yield* Effect.promise(() => next.answer)).toBe("reset")
        yield* cancelled(ports, 1, 0)
        const later = send(2n, "E", 300)
        gate.resolve()
        const answers = yield* Effect.promise(() => Promise.all([...running, later].map((one) => one.answer)))
        expect(answers).toEqual([...running.map(() => slow), isDirect ? lost(2n) : 301])
        expect(yield* counts(ports)).toEqual([running.length, isDirect ? 1 : 0])
      }),
  )

  it.live("a stream that is reset in the middle of a sequence ends the sequence", () =>
    Effect.gen(function* () {
      const { ports, calls, answer } = yield* served(serve, batches)
      const stream = calls.stream()
      stream.send(step(1n, "S", 1, 1))
      expect(yield* Effect.promise(() => stream.next())).toBe(1)
      for (const input of [slow, 2, 3]) stream.send(step(1n, "", input, 0))
      yield* Effect.promise(() => calls.read())
      yield* pending(ports, 2)
      stream.cancel()
      expect(yield* Effect.promise(() => stream.next())).toBe("reset")
      yield* cancelled(ports, 2, 1)
      expect(yield* answer(1n, "", 5)).toBe(lost(1n))
      yield* until(ports, "nereid_sequences_live", "", 0)
      expect(yield* counts(ports)).toEqual([0, 1])
      expect(yield* answer(1n, "SE", 7)).toBe(7)
    }),
  )

  // L1.5.cancel-direct@stream
  it.live("so does one whose next request waits for another sequence", () =>
    Effect.gen(function* () {
      const { ports, calls, answer, occupy } = yield* served(serve, batches)
      const stream = calls.stream()
      stream.send(step(2n, "S", 1, 1))
      expect(yield* Effect.promise(() => stream.next())).toBe(1)
      const running = yield* occupy
      for (const input of [2, 3, 4]) stream.send(step(2n, "", input, 0))
      yield* Effect.promise(() => calls.read())
      stream.cancel()
      yield* cancelled(ports, 3, 0)
      expect(yield* answer(2n, "", 5)).toBe(lost(2n))
      expect(yield* counts(ports)).toEqual([running.length, 1])
      gate.resolve()
      const answers = yield* Effect.promise(() => Promise.all(running.map((one) => one.answer)))
      expect(answers).toEqual(running.map(() => slow))
    }),
  )

  it.live("a stream that is reset while nothing waits leaves its sequences as they are", () =>
    Effect.gen(function* () {
      const { ports, calls, answer } = yield* served(serve, batches)
      const stream = calls.stream()
      for (const id of [1n, 2n]) stream.send(step(id, "S", Number(id), 0))
      expect(yield* Effect.promise(() => stream.next())).toBe(1)
      expect(yield* Effect.promise(() => stream.next())).toBe(2)
      stream.send(step(1n, "", slow, 0))
      yield* Effect.promise(() => calls.read())
      yield* pending(ports, 0)
      stream.cancel()
      yield* cancelled(ports, 0, 1)
      expect(yield* answer(2n, "E", 10)).toBe(12)
      expect(yield* answer(1n, "E", 10)).toBe(keepsRunning ? 11 + slow : 11)
      expect(yield* counts(ports)).toEqual([0, 0])
    }),
  )

  it.live("a stream that its client ends has all its answers, and its sequence goes on elsewhere", () =>
    Effect.gen(function* () {
      const { ports, calls, answer } = yield* served(serve, batches)
      const stream = calls.stream()
      for (const [flags, input] of [["S", slow] as const, ["", 1] as const, ["", 2] as const]) {
        stream.send(step(1n, flags, input, 0))
      }
      stream.halfClose()
      yield* Effect.promise(() => calls.read())
      gate.resolve()
      for (const expected of [slow, slow + 1, slow + 3, "closed"]) {
        expect(yield* Effect.promise(() => stream.next())).toBe(expected)
      }
      expect(yield* answer(1n, "E", 4)).toBe(slow + 7)
      expect(yield* counts(ports)).toEqual([0, 0])
    }),
  )

  it.live("a lost connection is the same for its streams and its other calls, and nothing to other sequences", () =>
    Effect.gen(function* () {
      const { ports, answer } = yield* served(serve, batches)
      expect(yield* answer(2n, "S", 5)).toBe(5)
      const losing = yield* open(ports)
      const stream = losing.stream()
      stream.send(step(1n, "S", 1, 1))
      expect(yield* Effect.promise(() => stream.next())).toBe(1)
      for (const input of [slow, 2]) stream.send(step(1n, "", input, 0))
      yield* Effect.promise(() => losing.read())
      yield* pending(ports, 1)
      losing.close()
      expect(yield* Effect.promise(() => stream.next())).toBe("closed")
      yield* cancelled(ports, 1, 1)
      expect(yield* answer(1n, "", 5)).toBe(lost(1n))

      const other = yield* open(ports)
      const running = other.unary(step(2n, "", slow, 0))
      yield* Effect.promise(() => other.read())
      yield* pending(ports, 0)
      other.close()
      expect(yield* Effect.promise(() => running.answer)).toBe("closed")
      yield* cancelled(ports, 1, 2)
      expect(yield* answer(2n, "E", 6)).toBe(keepsRunning ? 11 + slow : 11)
      expect(yield* counts(ports)).toEqual([0, 1])
    }),
  )
})

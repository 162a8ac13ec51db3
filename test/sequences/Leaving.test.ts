/** Callers that leave over each transport: in the backlog, in a slot, during an execution, and in an ensemble. */
import { afterEach, describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { blockedExecutions as executions, blockingSequences } from "../conformance/BlockedExecutions.ts"
import * as sequences from "../fixtures/sequences.ts"
import { GrpcCalls } from "./GrpcCalls.ts"
import { type Flags, notStarted, step } from "./Scenario.ts"
import { type Answer, metric, type ObservedPorts, transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

afterEach(() => executions.reset())

/** A call of one request whose caller may leave. */
interface Call {
  readonly answer: Promise<Answer>
  readonly leave: () => void
}

type Begin = (ports: ObservedPorts, model: string, id: bigint, flags: Flags, input: number) => Promise<Call>

const overHttp: Begin = async (ports, model, id, flags, input) => {
  const leaving = new AbortController()
  const parameters = {
    sequence_id: Number(id),
    sequence_start: flags.includes("S"),
    sequence_end: flags.includes("E"),
  }
  const answer = fetch(`http://127.0.0.1:${ports.http}/v2/models/${model}/infer`, {
    method: "POST",
    body: JSON.stringify({ parameters, inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [input] }] }),
    signal: leaving.signal,
  }).then(
    async (response): Promise<Answer> => {
      const { outputs, error } = JSON.parse(await response.text())
      return error ?? outputs[0].data[0]
    },
    () => "left",
  )
  return { answer, leave: () => leaving.abort() }
}

const overGrpc =
  (isStream: boolean): Begin =>
  async (ports, model, id, flags, input) => {
    const calls = await GrpcCalls.open(ports.grpc, model, true)
    const one = step(id, flags, input, 0)
    const stream = isStream ? calls.stream() : undefined
    stream?.send(one)
    const call = stream === undefined ? calls.unary(one) : { answer: stream.next(), cancel: stream.cancel }
    void call.answer.finally(() => calls.close())
    return { answer: call.answer, leave: call.cancel }
  }

const begins: Readonly<Record<string, Begin>> = {
  HTTP: overHttp,
  gRPC: overGrpc(false),
  "gRPC stream": overGrpc(true),
}

const running = (...names: ReadonlyArray<string>) =>
  Effect.repeat(
    Effect.sync(() => String(executions.running)),
    { until: (all) => all === String(names) },
  )

const until = (ports: ObservedPorts, name: string, labels: string, expected: number) =>
  Effect.repeat(metric(ports, name, labels), { until: (count) => count === expected })

const pending = (ports: ObservedPorts, count: number) =>
  until(ports, "nv_inference_pending_request_count", 'model="m"', count)

const canceled = (ports: ObservedPorts) => metric(ports, "nv_inference_request_failure", 'model="m",reason="CANCELED"')

const tensors = `
  input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
  output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }`

/** One slot for each candidate, and one execution at a time. */
const serve = (fields: string) =>
  serveFiles(
    {
      "m/config.pbtxt": sequences.config(fields, { maxBatchSize: 1, idle: 60_000_000 }),
      "m/1/model.ts": blockingSequences("m"),
      "e/config.pbtxt": `platform: "ensemble" max_batch_size: 1 ${tensors} ensemble_scheduling { step { model_name: "m"
        model_version: -1 input_map { key: "INPUT" value: "INPUT" } output_map { key: "OUTPUT" value: "OUTPUT" } } }`,
      "e/1/.keep": "",
    },
    { server: { drainTimeout: "10 millis" } },
  )

for (const [transport, send] of transports(1)) {
  const begin = (...args: Parameters<Begin>) => Effect.promise(() => begins[transport]?.(...args) ?? Promise.reject())
  const call = (ports: ObservedPorts, id: bigint, flags: Flags, input: number) =>
    Effect.promise(async () => (await send(ports, "m", [step(id, flags, input, 0)]))[0])
  const gone = (one: Call) =>
    Effect.map(
      Effect.promise(() => one.answer),
      (answer) => expect(answer).toBeOneOf(["left", "reset"]),
    )

  describe(transport, () => {
    for (const fields of ["direct {}", "oldest { max_candidate_sequences: 1 }"]) {
      // L1.5.cancel-backlog@all, L1.5.cancel-count@all
      it.live(`a request that leaves the backlog takes its sequence along, ${fields}`, () =>
        Effect.gen(function* () {
          const ports = yield* serve(fields)
          const first = yield* begin(ports, "m", 1n, "S", 1)
          yield* running("m 1")
          const start = yield* begin(ports, "m", 2n, "S", 1)
          yield* pending(ports, 1)
          const second = yield* begin(ports, "m", 2n, "E", 2)
          yield* pending(ports, 2)
          start.leave()
          yield* gone(start)
          yield* pending(ports, 0)
          const message = "another request of sequence 2 to model 'm' was cancelled"
          expect(yield* Effect.promise(() => second.answer)).toBe(message)
          expect(yield* canceled(ports)).toBe(2)
          expect(yield* metric(ports, "nereid_sequences_ended", 'reason="cancelled"')).toBe(1)
          expect(yield* call(ports, 2n, "", 3)).toBe(notStarted("2"))
          executions.end()
          expect(yield* Effect.promise(() => first.answer)).toBe(1)
        }),
      )

      // L1.5.cancel-executing@all
      it.live(`an execution whose caller leaves goes on, and so does its sequence, ${fields}`, () =>
        Effect.gen(function* () {
          const ports = yield* serve(fields)
          const first = yield* begin(ports, "m", 1n, "S", 1)
          yield* running("m 1")
          first.leave()
          yield* gone(first)
          yield* until(ports, "nereid_cancelled_rows", 'model="m",stage="instance"', 1)
          const last = yield* begin(ports, "m", 1n, "E", 5)
          executions.end()
          yield* running("m 1")
          executions.end()
          expect(yield* Effect.promise(() => last.answer)).toBe(5)
        }),
      )
    }

    // L1.5.cancel-oldest@all
    it.live("oldest: a request that may be executed leaves alone", () =>
      Effect.gen(function* () {
        const ports = yield* serve("oldest { max_candidate_sequences: 2 }")
        const start = yield* begin(ports, "m", 2n, "S", 1)
        yield* running("m 2")
        executions.end()
        expect(yield* Effect.promise(() => start.answer)).toBe(1)
        const other = yield* begin(ports, "m", 1n, "SE", 1)
        yield* running("m 1")
        const next = yield* begin(ports, "m", 2n, "", 2)
        yield* pending(ports, 1)
        next.leave()
        yield* gone(next)
        yield* pending(ports, 0)
        const last = yield* begin(ports, "m", 2n, "E", 3)
        yield* pending(ports, 1)
        executions.end()
        yield* running("m 2")
        executions.end()
        const answers = Promise.all([other, last].map((one) => one.answer))
        expect(yield* Effect.promise(() => answers)).toEqual([1, 3])
        expect(yield* canceled(ports)).toBe(1)
      }),
    )

    // L1.9.cancel@all
    it.live("a caller of an ensemble that leaves cancels the request of its step", () =>
      Effect.gen(function* () {
        const ports = yield* serve("oldest { max_candidate_sequences: 1 }")
        const first = yield* begin(ports, "e", 1n, "S", 1)
        yield* running("m 1")
        const waits = yield* begin(ports, "e", 2n, "S", 2)
        yield* pending(ports, 1)
        waits.leave()
        yield* gone(waits)
        yield* pending(ports, 0)
        expect(yield* canceled(ports)).toBe(1)
        expect(yield* metric(ports, "nereid_sequences_backlog", 'model="m"')).toBe(0)
        executions.end()
        expect(yield* Effect.promise(() => first.answer)).toBe(1)
      }),
    )
  })
}

/** Iterative sequences: one request that a script executes again and again, with a response of each step. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { notStarted, step } from "./Scenario.ts"
import { blockedExecutions as executions, blockingSteps } from "../conformance/BlockedExecutions.ts"
import { http, metric, overStream, type Ports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"
import { statistics } from "./Statistics.ts"

const config = (batching: string, more = "") => `
  max_batch_size: 4 ${more}
  model_transaction_policy { decoupled: true }
  ${batching}
  input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
  output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }`

/** INPUT n has the responses n-1 to 0, each of a separate step. */
const countdown = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  const left = new Map()
  export default ModelScript.stream({
    execute: function* ({ inputs: { INPUT }, sequence }) {
      const id = sequence?.id ?? 0n
      const next = (sequence?.isStart === false ? left.get(id) : INPUT.data[0]) - 1
      left.set(id, next)
      yield { OUTPUT: Tensor.make("INT32", INPUT.shape, Int32Array.of(next)) }
      if (next > 0) yield ModelScript.reschedule
    },
  })`

const serve = (batching: string, more = "") =>
  serveFiles({ "m/config.pbtxt": config(batching, more), "m/1/model.ts": countdown })

const iterative = (fields = "") => `sequence_batching { iterative_sequence: true ${fields} }`

/** OUTPUT of each event, or its error. */
const generate = (ports: Ports, input: number, parameters: object = {}) =>
  Effect.map(http(ports, "/v2/models/m/generate_stream", JSON.stringify({ INPUT: input, ...parameters })), ({ text }) =>
    text.split("\n").flatMap((line): ReadonlyArray<unknown> => {
      if (!line.startsWith("data: ")) return []
      const { OUTPUT, error }: { readonly OUTPUT?: number; readonly error?: string } = JSON.parse(line.slice(6))
      return [error ?? OUTPUT]
    }),
  )

for (const strategy of ["direct {}", "oldest { max_candidate_sequences: 2 }"]) {
  it.live(`generate_stream has the response of each step, ${strategy}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(iterative(strategy))
      expect(yield* generate(ports, 2)).toEqual([1, 0])
      expect(yield* generate(ports, 1)).toEqual([0])
    }),
  )

  // L3.slots@HTTP
  it.live(`more requests than slots have all their responses, ${strategy}`, () =>
    Effect.gen(function* () {
      const ports = yield* serve(iterative(strategy))
      const answers = yield* Effect.forEach([2, 3, 4, 5, 6, 7, 8], (input) => generate(ports, input), {
        concurrency: "unbounded",
      })
      expect(answers.map((responses) => responses.length)).toEqual([2, 3, 4, 5, 6, 7, 8])
      for (const responses of answers) expect(responses).toEqual(responses.toSorted((a, b) => Number(b) - Number(a)))
      expect(yield* metric(ports, "nereid_sequences_live")).toBe(0)
      expect(yield* metric(ports, "nv_inference_pending_request_count")).toBe(0)
    }),
  )
}

it.live("gRPC streams have the response of each step, for requests without an id and with START", () =>
  Effect.gen(function* () {
    const ports = yield* serve(iterative("oldest {}"))
    const send = (id: bigint, flags: "" | "S", input: number) =>
      Effect.promise(() => overStream(true)(ports, "m", [step(id, flags, input, 0)]))
    expect(yield* send(0n, "", 3)).toEqual([2, 1, 0])
    expect(yield* send(7n, "S", 2)).toEqual([1, 0])
    const lost = "inference request for sequence 7 to model 'm' must specify the START flag"
    expect(yield* send(7n, "", 2)).toEqual([expect.stringContaining(lost)])
  }),
)

const unconfigured =
  "Request is released with TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, while the model is not configured to handle such a " +
  "flag."

// L3.not-configured@stream
it.live.each([
  ["direct", "sequence_batching { direct {} }"],
  ["oldest", "sequence_batching { oldest {} }"],
  ["dynamic", "dynamic_batching {}"],
  ["default", ""],
] as const)("a model without iterative_sequence cannot reschedule: %s", ([name, batching]) =>
  Effect.gen(function* () {
    const ports = yield* serve(batching)
    const id = name === "direct" || name === "oldest" ? 1n : 0n
    const answers = yield* Effect.promise(() => overStream(true)(ports, "m", [step(id, "SE", 2, 0)]))
    expect(answers).toEqual([1, unconfigured])
  }),
)

it.live("a caller that leaves between two steps frees its slot", () =>
  Effect.gen(function* () {
    const ports = yield* serve(iterative("oldest { max_candidate_sequences: 1 }"))
    const leaving = new AbortController()
    const response = yield* Effect.promise(() =>
      fetch(`http://127.0.0.1:${ports.http}/v2/models/m/generate_stream`, {
        method: "POST",
        body: JSON.stringify({ INPUT: 1_000_000_000 }),
        signal: leaving.signal,
      }),
    )
    expect(yield* metric(ports, "nereid_sequences_live")).toBe(1)
    yield* Effect.promise(async () => response.body?.getReader().read())
    leaving.abort()
    expect(yield* generate(ports, 2)).toEqual([1, 0])
    expect(yield* metric(ports, "nereid_sequences_ended", 'reason="cancelled"')).toBe(1)
  }),
)

const executing = Effect.repeat(
  Effect.sync(() => executions.running.length),
  { until: (count) => count === 1 },
)

/** A model whose steps the test ends, and a sequence of three steps. */
const blocked = Effect.fnUntraced(function* (fields: string) {
  const other = `sequence_batching { max_sequence_idle_microseconds: 20000 }`
  const ports = yield* serveFiles(
    {
      "m/config.pbtxt": config(iterative(`max_sequence_idle_microseconds: 20000 ${fields}`)),
      "m/1/model.ts": blockingSteps("m"),
      "clock/config.pbtxt": config(other),
      "clock/1/model.ts": countdown,
    },
    { server: { drainTimeout: "10 millis" } },
  )
  yield* Effect.addFinalizer(() => Effect.sync(() => executions.reset()))
  const answers = yield* Effect.forkChild(
    Effect.promise(() => overStream(true)(ports, "m", [step(7n, "S", 3, 0)])),
    { startImmediately: true },
  )
  yield* executing
  return { ports, answers }
})

for (const fields of ["direct {}", "oldest {}"]) {
  // L3.slow@stream, L3.statistics@both
  it.live(`a step that is executed for longer than the idle limit ends no sequence, ${fields}`, () =>
    Effect.gen(function* () {
      const { ports, answers } = yield* blocked(fields)
      // A sequence that began later has expired meanwhile.
      yield* Effect.promise(() => overStream(true)(ports, "clock", [step(1n, "S", 1, 0)]))
      yield* Effect.repeat(metric(ports, "nereid_sequences_ended", 'model="clock",reason="expired"'), {
        until: (count) => count === 1,
      })
      for (let count = 0; count < 3; count++) {
        yield* executing
        executions.end()
      }
      expect(yield* Fiber.join(answers)).toEqual([3, 3, 3])
      expect(yield* statistics(ports, "m")).toEqual({ inferences: 3, executions: 3, sizes: { 1: 3 } })
    }),
  )

  // L3.closed@stream
  it.live(`a sequence that its caller closes during a step is not rescheduled, ${fields}`, () =>
    Effect.gen(function* () {
      const { ports, answers } = yield* blocked(fields)
      const parameters = { sequence_id: 7, sequence_end: true, sequence_close: true }
      const { status } = yield* http(ports, "/v2/models/m/generate_stream", JSON.stringify({ INPUT: 0, ...parameters }))
      expect(status).toBe(200)
      executions.end()
      expect(yield* Fiber.join(answers)).toEqual([3, notStarted("7")])
    }),
  )
}

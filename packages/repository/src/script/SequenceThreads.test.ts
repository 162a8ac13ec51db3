/** Scripts in worker threads whose models have sequences. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { Tensor } from "@nereid/core"
import type { Parameters } from "@nereid/core/internal/request/Request"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { infer, stream } from "@nereid/core/internal/running/CallableModel"
import { repository } from "../../../../test/fixtures/repository.ts"
import * as sequences from "../../../../test/fixtures/sequences.ts"
import { scripts } from "../Repository.fixture.ts"

const openScript = scripts(repository)

const threaded = (batching: string, more = "", instances = 1) =>
  `${sequences.config(batching, { instances })} ${more}
   parameters { key: "worker_threads" value { string_value: "true" } }`

/** The folder of the script has no packages. */
const script = (execute: string) => `
  const make = (like, value) => new like.constructor("INT32", like.shape, new Uint8Array(Int32Array.of(value).buffer))
  const reschedule = Symbol.for("nereid.reschedule")
  const left = new Map()
  export default { execute: ${execute} }`

const request = (input: number, parameters: Parameters = {}) => ({
  id: "",
  inputs: [Tensor.make("INT32", [1, 1], Int32Array.of(input))],
  rows: 1,
  parameters,
  deadline: undefined,
})

const call = (model: RunningModel, id: bigint | string, flags: "" | "S" | "E" | "SE", input: number) =>
  Effect.map(
    infer(
      model.calls,
      request(input, {
        sequence_id: id,
        sequence_start: flags.includes("S"),
        sequence_end: flags.includes("E"),
      }),
    ),
    ({ outputs }) => outputs.map((tensor) => (tensor === undefined ? undefined : Number(tensor.data[0]))),
  )

for (const strategy of ["direct {}", "oldest {}"]) {
  it.live(`a thread has the sequence, its controls and its state, ${strategy}`, () =>
    Effect.gen(function* () {
      const source = script(`(requests) => requests.map(({ inputs, sequence }) => {
        const { INPUT, INPUT_STATE, START, READY } = inputs
        if (!sequence.isReady) return READY.data[0] === 0 ? {} : new Error("ready")
        if (sequence.isStart !== (START.data[0] === 1)) return new Error("start")
        const sum = INPUT.data[0] + INPUT_STATE.data[0]
        const text = typeof sequence.id === "bigint" ? 0 : 1000
        return { OUTPUT: make(INPUT, sum + text + (sequence.isEnd ? 100 : 0)), OUTPUT_STATE: make(INPUT, sum) }
      })`)
      const batching = `${strategy} ${sequences.startAndReady} ${sequences.state()}`
      const { model } = yield* openScript(source, threaded(batching, "", 2), "model.js")
      expect(model().description.signature.inputs.map(({ name }) => name)).toEqual(["INPUT"])
      expect(yield* call(model(), 1n, "S", 1)).toEqual([1])
      expect(yield* call(model(), "x", "S", 10)).toEqual([1010])
      expect(yield* call(model(), 1n, "", 2)).toEqual([3])
      expect(yield* call(model(), "x", "E", 20)).toEqual([1130])
      expect(yield* call(model(), 1n, "E", 3)).toEqual([106])
      expect(yield* call(model(), 1n, "SE", 9)).toEqual([109])
    }),
  )
}

it.live("a thread reschedules requests of an iterative model, and streams their responses", () =>
  Effect.gen(function* () {
    const source = script(`function* ({ inputs: { INPUT }, sequence: { id, isStart } }) {
      const next = (isStart ? INPUT.data[0] : left.get(id)) - 1
      left.set(id, next)
      yield { OUTPUT: make(INPUT, next) }
      if (next > 0) yield reschedule
    }`)
    const decoupled = "model_transaction_policy { decoupled: true }"
    const { model } = yield* openScript(source, threaded("iterative_sequence: true oldest {}", decoupled), "model.js")
    const countdown = (input: number) =>
      Effect.map(Stream.runCollect(stream(model().calls, request(input))), (responses) =>
        [...responses].map(({ outputs }) => outputs[0]?.data[0]),
      )
    const fibers = yield* Effect.forEach([3, 2, 4], (input) => Effect.forkChild(countdown(input)))
    expect(yield* Effect.forEach(fibers, Fiber.join)).toEqual([
      [2, 1, 0],
      [1, 0],
      [3, 2, 1, 0],
    ])
  }),
)

it.live("a thread reschedules requests that have one response; without iterative_sequence they fail", () =>
  Effect.gen(function* () {
    const source = script(`(requests) => requests.map(({ inputs: { INPUT }, sequence: { id, isStart } }) => {
      const next = (isStart ? INPUT.data[0] : left.get(id)) - 1
      left.set(id, next)
      return next > 0 ? reschedule : { OUTPUT: make(INPUT, next) }
    })`)
    const iterative = yield* openScript(source, threaded("iterative_sequence: true oldest {}"), "model.js")
    expect((yield* infer(iterative.model().calls, request(3))).outputs[0]?.data[0]).toBe(0)
    expect(iterative.model().description.statistics.executionCount).toBe(3)
    const plain = yield* openScript(source, threaded("oldest {}"), "model.js")
    expect((yield* Effect.flip(call(plain.model(), 1n, "SE", 3))).message).toContain(
      "TRITONSERVER_REQUEST_RELEASE_RESCHEDULE",
    )
  }),
)

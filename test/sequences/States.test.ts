/** Implicit state of scripts over each transport: its beginning, its shape, and executions that leave none. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as sequences from "../fixtures/sequences.ts"
import { step } from "./Scenario.ts"
import { transports, transportsOf } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

const script = (body: string) => `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  const int = (...values) => Tensor.make("INT32", [1, values.length], Int32Array.from(values))
  export default ModelScript.define({ execute: (requests) => requests.map(({ inputs }) => { ${body} }) })`

const state = (name: string, type: string, dims: number, output = `${name}_OUT`) =>
  `state { input_name: "${name}" output_name: "${output}" data_type: TYPE_${type} dims: ${dims} }`

const files = {
  // A negative INPUT fails; 0 has no state.
  "sum/config.pbtxt": sequences.config(state("SUM", "INT32", 1)),
  "sum/1/model.ts": script(`
    const [input] = inputs.INPUT.data, sum = inputs.SUM.data[0] + input
    if (input < 0) return new Error("negative")
    return { OUTPUT: int(input === 0 ? inputs.SUM.data[0] + 1 : sum), ...(input > 0 && { SUM_OUT: int(sum) }) }`),
  "text/config.pbtxt": sequences.config(state("TEXT", "STRING", 1)),
  "text/1/model.ts": script(`
    const [text] = inputs.TEXT.data
    return { OUTPUT: int(text.length), TEXT_OUT: Tensor.make("BYTES", [1, 1], [new Uint8Array(inputs.INPUT.data[0])]) }`),
  "wide/config.pbtxt": sequences.config(state("WIDE", "INT32", -1)),
  "wide/1/model.ts": script(`
    const { data } = inputs.WIDE
    return { OUTPUT: int(data.length * 100 + data.at(-1)), WIDE_OUT: int(...data, inputs.INPUT.data[0]) }`),
  // Pairs whose names have another order on each side.
  "pairs/config.pbtxt": sequences.config(state("A", "INT32", 1, "Z") + state("B", "INT32", 1, "Y")),
  "pairs/1/model.ts": script(`
    const [input] = inputs.INPUT.data
    return { OUTPUT: int(inputs.A.data[0] * 100 + inputs.B.data[0]), Z: int(input), Y: int(input + 1) }`),
  "shown/config.pbtxt": sequences.config(sequences.state(), {
    more: `
      input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
      output { name: "OUTPUT_STATE" data_type: TYPE_INT32 dims: 1 }`,
  }),
  "no_rows/config.pbtxt": sequences.config(sequences.state()),
  "no_rows/1/model.onnx": sequences.withoutRows(),
  "shown/1/model.ts": script("return { OUTPUT_STATE: int(inputs.INPUT_STATE.data[0] + inputs.INPUT.data[0]) }"),
}

for (const [transport, send] of transports(4)) {
  // L2.failure@all, L2.no-update@all, L2.zero-strings@all, L2.variable@all, L2.shape@all, L2.several@all,
  // L2.returned@all, L2.split@all
  it.live(transport, () =>
    Effect.gen(function* () {
      const ports = yield* serveFiles(files, { server: { drainTimeout: "10 millis" } })
      const answers = (model: string, inputs: ReadonlyArray<number>) =>
        Effect.forEach(inputs, (input, index) =>
          Effect.promise(async () => (await send(ports, model, [step(7n, index === 0 ? "S" : "", input, 0)]))[0]),
        )
      const twelve = Array.from({ length: 12 }, () => 0)
      expect(yield* answers("sum", twelve)).toEqual(twelve.map(() => 1))
      expect(yield* answers("sum", [5, 0, -1, 2, 0])).toEqual([5, 6, expect.stringContaining("negative"), 7, 8])
      expect(yield* answers("text", [3, 4, 0])).toEqual([0, 3, 4])
      expect(yield* answers("wide", [3, 4, 0])).toEqual([100, 203, 304])
      expect(yield* answers("pairs", [3, 8, 0])).toEqual([0, 304, 809])
      expect(yield* answers("shown", [3, 4])).toEqual([3, 7])
      expect(yield* answers("no_rows", [3])).toEqual([
        expect.stringContaining(
          "failed to split the output state tensor 'OUTPUT_STATE' in responses: " +
            "expected batch size of at least 1 in model output, got 0",
        ),
      ])
    }),
  )
}

const counting = {
  "m/config.pbtxt": sequences.config(`oldest {} ${state("WIDE", "INT32", -1)}`),
  // OUTPUT: the requests of the batch, and the extent of the state.
  "m/1/model.ts": `
    import { ModelScript } from "@nereid/repository"
    import { Tensor } from "@nereid/core"
    const int = (...values) => Tensor.make("INT32", [1, values.length], Int32Array.from(values))
    export default ModelScript.define({ execute: (requests) => requests.map(({ inputs: { INPUT, WIDE } }) => ({
      OUTPUT: int(requests.length * 100 + WIDE.data.length), WIDE_OUT: int(...WIDE.data, INPUT.data[0]) })) })`,
}

for (const [transport, send] of transportsOf({
  name: "",
  behaviour: "state",
  maxBatchSize: 4,
  hold: [4, 0],
  steps: [],
  sizes: {},
})) {
  // L2.mismatch@all
  it.live(`${transport}: states of different shapes share no batch`, () =>
    Effect.gen(function* () {
      const ports = yield* serveFiles(counting, { server: { drainTimeout: "10 millis" }, hold: [2, 0] })
      // The second request of 1 and the first one of 3 could share a batch.
      const steps = [step(1n, "S", 1, 201), step(2n, "SE", 1, 201), step(1n, "E", 1, 102), step(3n, "SE", 1, 101)]
      const answers = yield* Effect.promise(() => send(ports, "m", steps))
      expect(answers).toEqual(steps.map(({ expected }) => expected))
    }),
  )
}

/** Triton's ragged batches by ONNX Runtime: requests of different lengths in one run, nothing padded. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"
import { file, ragged } from "../../../test/fixtures/onnx.ts"
import { Onnx } from "./index.ts"

class Lines extends Model.Service<Lines>()("lines", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.FP32("n"), END: Tensor.INT32() },
  maxBatchSize: 8,
  batching: { maxQueueDelay: "5 seconds", preferredBatchSizes: [3] },
}) {}

const bytes = ragged()

const flat = {
  inputs: ["X"],
  batchInputs: { ENDS: { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", datatype: "INT32", source: "X" } },
  batchOutputs: { Y: "X" },
} as const

const row = (...values: ReadonlyArray<number>) => Tensor.make("FP32", [values.length], Float32Array.from(values))

it.live("requests of different lengths are one run, and each has its own back", () =>
  Effect.gen(function* () {
    const path = yield* file(bytes)
    const responses = yield* Effect.gen(function* () {
      const lines = yield* Lines
      const infer = (X: ReturnType<typeof row>) => lines.infer({ X })
      const pending = yield* Effect.forEach([row(1, 2, 3), row(), row(4)], infer, { concurrency: "unbounded" })
      expect(lines.model.description.statistics.executionCount).toBe(1)
      return pending
    }).pipe(Effect.provide(Onnx.layer(Lines, { file: path, flat })))
    expect(responses.map(({ Y, END }) => [[...Y.data], [...END.data]])).toEqual([
      [[2, 4, 6], [3]],
      [[], [3]],
      [[8], [4]],
    ])
  }),
)

it.live("a file that wants other inputs than are made is refused, by name", () =>
  Effect.gen(function* () {
    const path = yield* file(bytes)
    const load = Effect.scoped(
      Effect.provide(Lines, Onnx.layer(Lines, { file: path, flat: { inputs: ["X"], batchOutputs: { Y: "X" } } })),
    )
    expect((yield* Effect.flip(load)).message).toContain(
      "input 'ENDS': expected no such input, found INT32[\"requests\"]",
    )
  }),
)

const layer = (options: Onnx.LayerOptions<typeof Lines.definition.inputs>["flat"]) =>
  options === undefined ? undefined : Onnx.layer(Lines, { file: "lines.onnx", flat: options })

export const refused = () => {
  const ends = flat.batchInputs.ENDS
  layer({ inputs: ["X"], batchInputs: { ENDS: ends } })
  // @ts-expect-error no such input
  layer({ inputs: ["Y"] })
  // @ts-expect-error no such input to be shaped like
  layer({ inputs: ["X"], batchOutputs: { Y: "Z" } })
  // @ts-expect-error no such kind
  layer({ inputs: ["X"], batchInputs: { ENDS: { ...ends, kind: "BATCH_COUNT" } } })
  // @ts-expect-error counts are numbers
  layer({ inputs: ["X"], batchInputs: { ENDS: { ...ends, datatype: "BYTES" } } })
}

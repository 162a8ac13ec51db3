/** Tensors of every datatype in slots for any shapes. */
import { assert, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { all, byteWidth } from "@nereid/core/internal/tensor/DataType"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Effect } from "effect"
import { model, node, value } from "../../../test/fixtures/onnx.ts"
import { inSlot, run, started } from "./DynamicBatches.fixture.ts"

const types = all.filter((datatype) => datatype !== "BYTES" && datatype !== "BF16")

class Typed extends Model.Service<Typed>()("typed", {
  inputs: { VALUES: Tensor.FP32("n") },
  outputs: { VALUES_OUT: Tensor.FP32("n") },
}) {}

for (const datatype of types) {
  it.live(`${datatype} of changing lengths`, () =>
    Effect.gen(function* () {
      const { definition } = Typed
      const typed = (specs: typeof definition.signature.inputs) => specs.map((spec) => ({ ...spec, datatype }))
      const signature = { inputs: typed(definition.signature.inputs), outputs: typed(definition.signature.outputs) }
      const same = model({
        inputs: [value("VALUES", datatype, ["n"])],
        outputs: [value("VALUES_OUT", datatype, ["n"])],
        nodes: [node("Identity", ["VALUES"], ["VALUES_OUT"])],
      })
      const { instance, way } = yield* started({ ...definition, signature }, same)
      for (const [sequence, length] of [5, 0, 9, 1].entries()) {
        const bytes = Uint8Array.from({ length: length * byteWidth(datatype)! }, (_, index) => index & 1)
        const [output] = yield* run(instance, new TypedTensor(datatype, [length], bytes))
        assert.deepEqual(way(sequence), inSlot)
        assert.deepEqual(output?.shape, [length])
        assert.deepEqual([...output!.bytes], [...bytes])
      }
    }),
  )
}

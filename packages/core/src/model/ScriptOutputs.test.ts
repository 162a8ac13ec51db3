import { expect, it } from "vitest"
import { Result } from "effect"
import * as Tensor from "../Tensor.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import * as SampleCodec from "./SampleCodec.ts"
import * as ScriptOutputs from "./ScriptOutputs.ts"

const spec = (name: string): TensorSpec => ({
  name,
  datatype: "FP32",
  dims: [1],
  optional: true,
  form: "tensor",
})

const names = ["constructor", "toString", "__proto__", "Y"]

const y = Tensor.make("FP32", [1], Float32Array.of(1))

it.each([{}, { Y: y }, Object.create(null)])(
  "names that all objects have are left out unless they are set",
  (outputs) => {
    const collected = ScriptOutputs.collect(names.map(spec), outputs, { batching: false, rows: undefined })
    expect(Result.getOrThrow(collected)).toEqual({ tensors: [undefined, undefined, undefined, outputs.Y], unusual: [] })
  },
)

it("an output called constructor is taken where it is set, and a getter of a class is", () => {
  class Outputs {
    get Y() {
      return y
    }
  }
  expect(SampleCodec.valueOf({ ["constructor"]: y }, "constructor")).toBe(y)
  expect(SampleCodec.valueOf(new Outputs(), "constructor")).toBe(undefined)
  expect(SampleCodec.valueOf(new Outputs(), "Y")).toBe(y)
})

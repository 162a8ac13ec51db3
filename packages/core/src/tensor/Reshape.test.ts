import { expect, it } from "@effect/vitest"
import * as Reshape from "./Reshape.ts"
import type { Dim, Signature } from "./TensorSpec.ts"
import * as Tensor from "../Tensor.ts"

const signature = (dims: ReadonlyArray<Dim>): Signature => {
  const spec = { name: "x", datatype: "INT8", dims, optional: false } as const
  return { inputs: [spec], outputs: [spec] }
}

const of = (shape: ReadonlyArray<number>) => Tensor.make("INT8", shape, new Int8Array(shape.reduce((a, b) => a * b, 1)))

const cases: ReadonlyArray<
  readonly [outer: ReadonlyArray<Dim>, inner: ReadonlyArray<Dim>, batching: boolean, from: number[], to: number[]]
> = [
  [[16], [4, 4], true, [3, 16], [3, 4, 4]],
  [[16], [1, 4, 4], false, [16], [1, 4, 4]],
  [[1], [], true, [3, 1], [3]],
  [[2, 4, -1, 6], [8, -1, 1, 6], false, [2, 4, 5, 6], [8, 5, 1, 6]],
  [["n", -1, 1], [-1, "m"], true, [2, 3, 4, 1], [2, 3, 4]],
]

for (const [outer, inner, batching, from, to] of cases) {
  it(`dims [${outer}] are [${inner}]: [${from}] is [${to}] inside${batching ? ", with a batch dimension" : ""}`, () => {
    const { inputs, outputs } = Reshape.make(signature(outer), signature(inner), batching)
    const tensor = of(from)
    const inside = inputs(tensor, 0)
    expect([inside.shape, inside.bytes === tensor.bytes]).toEqual([to, true])
    expect(outputs(inside, 0).shape).toEqual(from)
  })
}

it("leaves tensors as they are without a reshape", () => {
  const same = signature([2])
  const tensor = of([2])
  expect(Reshape.make(same, same, false).inputs(tensor, 0)).toBe(tensor)
})

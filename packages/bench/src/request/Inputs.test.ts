import { all, byteWidth } from "@nereid/core/internal/tensor/DataType"
import { sizeProblem, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { describe, expect, it } from "vitest"
import * as Inputs from "./Inputs.ts"
import type { ModelTraits, TensorTraits } from "../target/ModelTraits.ts"
import * as Random from "@nereid/core/internal/synthetic/Random"

const input = (shape: ReadonlyArray<number>, rest: Partial<TensorTraits> = {}): TensorTraits => ({
  name: "IN",
  datatype: "FP32",
  shape,
  optional: false,
  ...rest,
})

const model = (maxBatchSize: number, ...inputs: ReadonlyArray<TensorTraits>): ModelTraits => ({
  name: "m",
  platform: "",
  inputs,
  outputs: [],
  maxBatchSize,
  decoupled: false,
})

const make = (traits: ModelTraits, options: Partial<Inputs.InputOptions> = {}, shape?: ReadonlyArray<number>) =>
  Inputs.make(
    traits,
    {
      batchSize: 1,
      shapes: new Map(shape === undefined ? [] : [["IN", shape]]),
      values: "random",
      text: undefined,
      textLength: 4,
      variants: 1,
      ...options,
    },
    Random.make(1),
  )

describe("shapes", () => {
  it.each<readonly [string, ModelTraits, number, ReadonlyArray<number> | undefined, ReadonlyArray<number>]>([
    ["all known, no batches", model(0, input([3, 4])), 1, undefined, [3, 4]],
    ["all known, in batches", model(8, input([-1, 3])), 5, undefined, [5, 3]],
    ["a scalar", model(0, input([])), 1, undefined, []],
    ["given without the batch", model(8, input([-1, -1, 3])), 2, [7, 3], [2, 7, 3]],
    ["given with the batch", model(8, input([-1, -1, 3])), 2, [2, 7, 3], [2, 7, 3]],
    ["given, no batches", model(0, input([-1, 3])), 1, [7, 3], [7, 3]],
    ["given for what is known anyway", model(0, input([7])), 1, [7], [7]],
  ])("%s", (_, traits, batchSize, given, expected) => {
    expect(make(traits, { batchSize }, given)).toMatchObject([{ name: "IN", shape: expected }])
  })

  it("an optional input of any size is left out, until it has a shape", () => {
    const traits = model(0, input([-1], { optional: true }))
    expect(make(traits)).toEqual([])
    expect(make(traits, {}, [3])).toMatchObject([{ shape: [3] }])
  })

  it.each<readonly [string, ModelTraits, number, ReadonlyArray<number> | undefined, string]>([
    [
      "not known",
      model(8, input([-1, -1, 3])),
      1,
      undefined,
      "input 'IN' is FP32[-1,-1,3] with dynamic dimensions: specify a shape, such as IN:8,3",
    ],
    ["of another rank", model(0, input([-1])), 1, [1, 2, 3], "the shape IN:1,2,3 does not fit FP32[-1]"],
    ["of another extent", model(0, input([-1, 3])), 1, [1, 4], "the shape IN:1,4 does not fit FP32[-1,3]"],
    ["of another batch", model(8, input([-1, -1])), 2, [3, 5], "with a batch of 2"],
    ["a batch for none", model(0, input([3])), 2, undefined, "model 'm' does not batch"],
    ["too large a batch", model(8, input([-1, 3])), 9, undefined, "must be at most 8, got 9"],
    ["no inputs", model(0), 1, undefined, "the server reports no inputs of model 'm'"],
    [
      "of another input",
      model(0, input([3], { name: "X" })),
      1,
      [3],
      "a shape names the unknown input 'IN' of model 'm'; its inputs: X",
    ],
  ])("%s is refused", (_, traits, batchSize, given, message) => {
    expect(() => make(traits, { batchSize }, given)).toThrow(message)
  })
})

describe("elements", () => {
  it.each(all)("of %s fill the shape, and are equal for equal seeds", (datatype) => {
    const traits = model(0, input([2, 3], { datatype }))
    const [tensor] = make(traits)
    expect(sizeProblem(new TypedTensor(datatype, [2, 3], tensor?.bytes ?? new Uint8Array()))).toBeUndefined()
    expect(make(traits)[0]?.bytes).toEqual(tensor?.bytes)
    expect(new Set(tensor?.bytes).size).toBeGreaterThan(1)
  })

  it.each(all.filter((datatype) => byteWidth(datatype) !== undefined))(
    "of %s are zero where they are to be",
    (datatype) => {
      const [tensor] = make(model(0, input([2, 3], { datatype })), { values: "zero" })
      expect(new Set(tensor?.bytes)).toEqual(new Set([0]))
    },
  )

  it("are numbers that models bear", () => {
    const of = (datatype: TensorTraits["datatype"]) => {
      const [tensor] = make(model(0, input([1000], { datatype })))
      const data = new TypedTensor(datatype, [1000], tensor?.bytes ?? new Uint8Array()).data
      return Array.from(data as Iterable<number | bigint>, Number)
    }
    for (const datatype of ["FP16", "FP32", "FP64"] as const) {
      expect(Math.min(...of(datatype))).toBeGreaterThanOrEqual(0)
      expect(Math.max(...of(datatype))).toBeLessThan(1)
    }
    for (const datatype of ["INT8", "UINT16", "INT32", "INT64"] as const) {
      expect(Math.min(...of(datatype))).toBe(0)
      expect(Math.max(...of(datatype))).toBe(127)
    }
    expect(new Set(of("BOOL"))).toEqual(new Set([0, 1]))
  })

  it("of BYTES are random letters, or the given text", () => {
    const traits = model(0, input([2], { datatype: "BYTES" }))
    const text = (options: Partial<Inputs.InputOptions>) =>
      Buffer.from(make(traits, options)[0]?.bytes ?? []).toString()
    expect(text({ textLength: 3 })).toMatch(/^(?:[^]{4}[a-z]{3}){2}$/)
    expect(text({ text: "é" })).toBe("\x02\0\0\0é\x02\0\0\0é")
  })
})

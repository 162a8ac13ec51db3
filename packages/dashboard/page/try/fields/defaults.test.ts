import { expect, it } from "vitest"
import type { Field } from "../../api/Model.ts"
import { read } from "../tensor/ValueText.ts"
import { startingValues } from "./defaults.ts"

const field = (datatype: string, dims: Field["dims"], preset?: unknown): Field => ({
  name: "x",
  datatype,
  dims,
  form: "tensor",
  optional: preset !== undefined,
  labels: [],
  schema: undefined,
  default: preset,
})

it.each([
  [field("FP32", ["n"]), "0 0 0 0"],
  [field("INT64", [2, 2]), "[[0,0],[0,0]]"],
  [field("BOOL", [2]), "false false"],
  [field("BYTES", [2]), '["text","text"]'],
  [field("FP32", [3], { element: 1.5 }), "1.5 1.5 1.5"],
  [field("INT64", [2], { shape: [2], data: ["9007199254740993", "1"] }), "9007199254740993 1"],
  [field("FP32", [224, 224]), undefined],
])("a tensor starts with values that can be sent (%#)", (given, expected) => {
  const text = startingValues(given)
  expect(text).toBe(expected)
  if (text !== undefined) expect(() => read(text, given.datatype, given.dims)).not.toThrow()
})

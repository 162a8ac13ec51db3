import { expect, it } from "vitest"
import type { Contract, ContractTensor } from "./Contract.ts"
import { compare, print } from "./ContractDifference.ts"

const tensor = (
  name: string,
  datatype: string,
  dims: ContractTensor["dims"],
  more: Partial<ContractTensor> = {},
): ContractTensor => ({ name, datatype, dims, optional: false, ...more })

const contract = (
  inputs: ReadonlyArray<ContractTensor>,
  outputs: ReadonlyArray<ContractTensor> = [],
  maxBatchSize: number | undefined = 0,
): Contract => ({ name: "m", inputs, outputs, maxBatchSize })

const callable = (declared: Contract, found: Contract) => compare(declared, found, "callable").map(print)
const same = (declared: Contract, found: Contract) => compare(declared, found, "same").map(print)

const unknown = (found: Contract): Contract => ({
  ...found,
  maxBatchSize: undefined,
  inputs: found.inputs.map((input) => ({ ...input, optional: undefined })),
})

it("names every difference at once", () => {
  const declared = contract(
    [tensor("X", "FP32", [3, 224]), tensor("GONE", "INT8", [1])],
    [tensor("Y", "FP32", [10]), tensor("LOST", "BYTES", [1])],
    8,
  )
  const found = contract(
    [tensor("X", "FP16", [3, 224]), tensor("NEW", "INT64", ["n"])],
    [tensor("Y", "FP32", [11]), tensor("MORE", "FP32", [1])],
    0,
  )
  expect(callable(declared, found)).toEqual([
    "model 'm': declared batches of up to 8 rows, found no batches",
    "input 'X': declared FP32[3,224], found FP16[3,224]",
    "input 'GONE': declared INT8[1], but not found",
    `input 'NEW': not declared, but found INT64["n"]`,
    "output 'Y': declared FP32[10], found FP32[11]",
    "output 'LOST': declared BYTES[1], but not found",
  ])
  expect(same(declared, found)).toContain("output 'MORE': not declared, but found FP32[1]")
})

it("to callers, an input may be narrower than what is served, not wider", () => {
  expect(callable(contract([tensor("X", "FP32", [3])]), contract([tensor("X", "FP32", [-1])]))).toEqual([])
  expect(callable(contract([tensor("X", "FP32", ["n"])]), contract([tensor("X", "FP32", [-1])]))).toEqual([])
  expect(callable(contract([tensor("X", "FP32", ["n"])]), contract([tensor("X", "FP32", [3])]))).toHaveLength(1)
  expect(callable(contract([tensor("X", "FP32", [3])]), contract([tensor("X", "FP32", [3, 1])]))).toHaveLength(1)
})

it("an output may be required or optional for clients, because every response is checked", () => {
  const output = (...dims: ReadonlyArray<number | string>) => contract([], [tensor("Y", "FP32", dims)])
  expect(callable(output(3), output(-1))).toEqual([])
  expect(callable(output("n"), output(3))).toEqual([])
  expect(callable(output(3), output(4))).toHaveLength(1)
  expect(callable(output(3), output(3, 3))).toHaveLength(1)
})

it("to callers, batches may be smaller than those served", () => {
  const batches = (rows: number) => contract([], [], rows)
  expect(callable(batches(4), batches(8))).toEqual([])
  expect(callable(batches(8), batches(4))).toEqual([
    "model 'm': declared batches of up to 8 rows, found batches of up to 4 rows",
  ])
  expect(callable(batches(0), batches(4))).toHaveLength(1)
  expect(same(batches(4), batches(8))).toHaveLength(1)
})

it("to callers, what is optional to the server may be required, not the other way round", () => {
  const input = (optional: boolean) => contract([tensor("X", "FP32", [1], { optional })])
  expect(callable(input(false), input(true))).toEqual([])
  expect(callable(input(true), input(false))).toEqual(["input 'X': declared optional, found required"])
  expect(same(input(false), input(true))).toEqual(["input 'X': declared required, found optional"])
  expect(callable(contract([]), input(true))).toEqual([])
  const preset = contract([tensor("X", "FP32", [1], { optional: true, default: { element: new Uint8Array(4) } })])
  expect(callable(preset, input(false))).toEqual([])
  expect(same(preset, input(false))).toEqual([])
})

it("where nothing is known of batches, dims are compared with the batch dimension", () => {
  const declared = contract([tensor("X", "FP32", [16], { optional: true })], [], 8)
  expect(callable(declared, unknown(contract([tensor("X", "FP32", [-1, 16])])))).toEqual([])
  expect(callable(declared, unknown(contract([tensor("X", "FP32", [16])])))).toEqual([
    "input 'X': declared FP32[-1,16], found FP32[16]",
  ])
  expect(same(declared, unknown(contract([tensor("X", "FP32", ["batch", 16])])))).toEqual([])
  expect(
    callable(contract([tensor("X", "FP32", [-1, 16])]), unknown(contract([tensor("X", "FP32", [-1, 16])]))),
  ).toEqual([])
})

it("is the same where only a name of a dimension is known to one of both", () => {
  const input = (...dims: ReadonlyArray<number | string>) => contract([tensor("X", "FP32", dims)])
  expect(same(input("n", 3), input(-1, 3))).toEqual([])
  expect(same(input(-1, 3), input("n", 3))).toEqual([])
  expect(same(input("n", 3), input("m", 3))).toEqual([`input 'X': declared FP32["n",3], found FP32["m",3]`])
  expect(same(input(3), input(-1))).toHaveLength(1)
  expect(same(input(-1), input(3))).toHaveLength(1)
})

it("labels differ where both have some", () => {
  const output = (labels?: ReadonlyArray<string>) =>
    contract([], [tensor("C", "INT32", [1], labels === undefined ? {} : { labels })])
  expect(same(output(["a", "b"]), output())).toEqual([])
  expect(same(output(["a", "b"]), output(["a", "b"]))).toEqual([])
  expect(same(output(["a", "b"]), output(["b", "a"]))).toEqual([
    `output 'C': declared labels ["a","b"], found labels ["b","a"]`,
  ])
})

import { expect, it } from "vitest"
import { make } from "../tensor/TypedTensor.ts"
import type { Contract, ContractError, ContractParameter, ContractTensor } from "./Contract.ts"
import { compare, print } from "./ContractDifference.ts"
import { fromJsonSchema } from "./JsonType.ts"

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

const json = (schema: object) => fromJsonSchema({ schema, definitions: {} })

const object = (names: ReadonlyArray<string>, required: ReadonlyArray<string> = names) =>
  json({ type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required })

it("JSON inputs must be accepted, and JSON outputs must be readable", () => {
  const of = (inputs: ReadonlyArray<string>, outputs: ReadonlyArray<string>, required = outputs) =>
    contract(
      [tensor("X", "BYTES", [1], { form: "json", json: object(inputs) })],
      [tensor("Y", "BYTES", [1], { form: "json", json: object(outputs, required) })],
    )
  expect(callable(of(["a", "b"], ["c"]), of(["a"], ["c", "d"]))).toEqual([])
  expect(callable(of(["a"], ["c", "d"]), of(["a", "b"], ["c"]))).toEqual([
    "input 'X': declared { a: string }, found { a: string; b: string }",
    "output 'Y': declared { c: string; d: string }, found { c: string }",
  ])
  expect(callable(of(["a"], ["c"]), of(["a"], ["c"], []))).toEqual([])
  expect(same(of(["a"], ["c"]), of(["a"], ["c"], []))).toEqual([
    "output 'Y': declared { c: string }, found { c?: string }",
  ])
})

it("a file is out of date where the model says text or JSON for bytes, or another default", () => {
  const input = (form: ContractTensor["form"], text = "a") =>
    contract([
      tensor("X", "BYTES", [1], {
        form,
        optional: true,
        default: { row: make("BYTES", [1], [new TextEncoder().encode(text)]) },
      }),
    ])
  expect(same(input("tensor"), input("utf8"))).toEqual(["input 'X': declared tensor, found utf8"])
  expect(same(input("utf8"), input("tensor"))).toEqual([])
  expect(same(input("tensor"), input(undefined))).toEqual([])
  expect(callable(input("tensor"), input("json"))).toEqual([])
  expect(same(input("utf8"), input("utf8", "b"))).toEqual([`input 'X': declared default ["a"], found default ["b"]`])
  expect(callable(input("utf8"), input("utf8", "b"))).toEqual([])
})

it("parameters of requests must be accepted, and those of responses must come", () => {
  const parameter = (name: string, type: string, optional = false): ContractParameter => ({
    name,
    json: json({ type }),
    optional,
  })
  const of = (
    parameters: ReadonlyArray<ContractParameter> | undefined,
    responseParameters?: ReadonlyArray<ContractParameter>,
  ): Contract => ({ ...contract([]), parameters, responseParameters })
  const [size, mode, more] = [
    parameter("size", "integer"),
    parameter("mode", "string", true),
    parameter("more", "null"),
  ]
  expect(callable(of([size, more]), of([size, mode]))).toEqual([])
  expect(callable(of([more]), of([size, mode]))).toEqual(["parameter 'size': not declared, but found integer"])
  expect(callable(of([parameter("size", "number")]), of([size]))).toEqual([
    "parameter 'size': declared number, found integer",
  ])
  expect(callable(of([parameter("size", "integer", true)]), of([size]))).toEqual([
    "parameter 'size': declared optional, found required",
  ])
  // Any may be sent without a declaration, and any may come.
  expect(callable(of(undefined), of([size], [size]))).toEqual([])
  expect(callable(of([size], [size]), of(undefined))).toEqual([])
  expect(callable(of([], [mode]), of([], []))).toEqual([])
  expect(callable(of([], [size]), of([], []))).toEqual(["response parameter 'size': declared integer, but not found"])
  expect(callable(of([], [size]), of([], [parameter("size", "integer", true)]))).toEqual([
    "response parameter 'size': declared required, found optional",
  ])
  expect(same(of([size, more]), of([size, mode]))).toEqual([
    "parameter 'more': declared null, but not found",
    "parameter 'mode': not declared, but found string",
  ])
})

it("errors of one tag have the same fields", () => {
  const of = (...errors: ReadonlyArray<ContractError>): Contract => ({ ...contract([]), errors })
  const error = (tag: string, fields: ReadonlyArray<string>, http = 500): ContractError => ({
    tag,
    http,
    grpc: "INTERNAL",
    json: object(fields),
  })
  expect(callable(of(error("A", [])), of(error("B", [])))).toEqual([])
  expect(callable(of(error("A", ["x"])), of(error("A", ["x", "y"], 400)))).toEqual([])
  expect(callable(of(error("A", ["x"])), of(error("A", [])))).toEqual(["error 'A': declared { x: string }, found {}"])
  expect(same(of(error("A", []), error("C", [])), of(error("A", [], 400), error("B", [])))).toEqual([
    "error 'C': declared C, but not found",
    "error 'A': declared 500 and INTERNAL, found 400 and INTERNAL",
    "error 'B': not declared, but found B",
  ])
  expect(same(of(error("A", [])), { ...contract([]), errors: undefined })).toEqual([])
})

it("names a model whose requests belong to sequences on one side alone", () => {
  const model = (sequence: Contract["sequence"]): Contract => ({ ...contract([]), sequence })
  for (const compared of [callable, same]) {
    expect(compared(model(false), model({}))).toEqual(["model 'm': declared independent requests, found sequences"])
    expect(compared(model({ maxIdle: 5 }), model(false))).toEqual([
      "model 'm': declared sequences, found independent requests",
    ])
    // The time is up to the server, and some sources do not say whether there are sequences.
    expect(compared(model({ maxIdle: 5 }), model({}))).toEqual([])
    expect(compared(model({}), model(undefined))).toEqual([])
    expect(compared(model(undefined), model({}))).toEqual([])
  }
})

import { Result, Schema } from "effect"
import { expect, it } from "vitest"
import { Model, Tensor } from "../index.ts"
import type { Contract } from "./Contract.ts"
import * as ContractDocument from "./ContractDocument.ts"
import { declared, merge } from "./ContractExtension.ts"

const plain: Contract = {
  name: "m",
  inputs: [
    { name: "TEXT", datatype: "BYTES", dims: [1], optional: false },
    { name: "X", datatype: "FP32", dims: [-1, 3], optional: false },
    { name: "O", datatype: "INT8", dims: [2], optional: true },
  ],
  outputs: [{ name: "Y", datatype: "INT32", dims: [1], optional: false }],
  maxBatchSize: 4,
}

const merged = (document: unknown) => Result.getOrThrow(merge(plain, JSON.stringify(document)))

const input = (position: number, entry: object) =>
  merged({ inputs: [{ name: plain.inputs[position]?.name, ...entry }] }).inputs[position]

const refusal = (text: string) => Result.merge(Result.map(merge(plain, text), () => "accepted"))

class Nothing extends Model.Service<Nothing>()("nothing", {
  inputs: {
    X: Tensor.FP32(3, -1),
    ONE: Tensor.scalar("INT8"),
    RAW: Tensor.BYTES(1),
    MORE: Tensor.optional(Tensor.FP32(2)),
  },
  outputs: { Y: Tensor.FP32(3) },
  maxBatchSize: 8,
}) {}

it("a declaration that metadata and configuration describe has no document", () => {
  expect(ContractDocument.make(Nothing.definition)).toBeUndefined()
})

it("a document that is too large is omitted", () => {
  const labels = Array.from({ length: 100_000 }, (_, index) => `a long label ${index}`)
  const signature = {
    inputs: [],
    outputs: [{ name: "Y", datatype: "FP32" as const, dims: [100_000], optional: false, labels }],
  }
  expect(
    ContractDocument.make({ signature, parameters: undefined, responseParameters: undefined, errors: undefined }),
  ).toBeUndefined()
})

it("a default that is too large is left to the server", () => {
  const zeros = Tensor.make("FP32", [2000], new Float32Array(2000))
  class Large extends Model.Service<Large>()("large", {
    inputs: { X: Tensor.optional(Tensor.FP32(2000), { default: zeros }) },
    outputs: { Y: Tensor.utf8() },
  }) {}
  expect(ContractDocument.make(Large.definition)?.document).toEqual({ outputs: [{ name: "Y", form: "utf8" }] })
})

class Undecodable extends Schema.TaggedError<Undecodable>()("Undecodable", { at: Schema.Date }) {}

class Whole extends Model.Service<Whole>()("whole", {
  inputs: { TEXT: Tensor.utf8(), X: Tensor.FP32("rows", 3) },
  outputs: { Y: Tensor.json(Schema.Struct({ a: Schema.Int })) },
  parameters: { t: Schema.NumberFromString },
  errors: [[Undecodable, { http: 410 }]],
}) {}

it("describes a declaration in JSON", () => {
  expect(ContractDocument.make(Whole.definition)?.document).toMatchObject({
    inputs: [
      { name: "TEXT", form: "utf8" },
      { name: "X", dims: ["rows", 3] },
    ],
    outputs: [{ name: "Y", form: "json", schema: { type: "object", required: ["a"] } }],
    parameters: [{ name: "t", schema: { type: "string" } }],
    errors: [{ tag: "Undecodable", http_status: 410, grpc_code: "INTERNAL", schema: { $ref: expect.any(String) } }],
  })
  expect(declared(Whole.definition)).toMatchObject({
    inputs: [{ form: "utf8" }, { dims: ["rows", 3] }],
    outputs: [{ json: { type: { kind: "object" } } }],
    errors: [{ tag: "Undecodable", http: 410, grpc: "INTERNAL" }],
  })
})

it("adds what the metadata does not say", () => {
  expect(input(0, { form: "utf8" })).toMatchObject({ form: "utf8" })
  expect(input(0, { form: "json", schema: { type: "null" } })).toMatchObject({ json: { type: { kind: "null" } } })
  expect(input(1, { dims: ["rows", 3] })).toMatchObject({ dims: ["rows", 3] })
  expect(input(2, { default: { element: 5 } })).toMatchObject({ default: { element: Uint8Array.of(5) } })
})

it.each([
  ["a form that the datatype cannot have", 1, { form: "utf8" }],
  ["a form that the shape cannot have", 2, { form: "scalar" }],
  ["dims of another rank", 1, { dims: ["rows"] }],
  ["dims that are variable, but fixed in the metadata", 1, { dims: ["rows", "columns"] }],
  ["empty labels", 1, { labels: [] }],
  ["a default of a required input", 1, { default: { element: 1 } }],
  ["a default that the datatype cannot hold", 2, { default: { element: 500 } }],
  ["a default of another shape", 2, { default: { shape: [3], data: [1, 2, 3] } }],
  ["a default of fewer elements", 2, { default: { shape: [2], data: [1] } }],
  ["a default of another type", 2, { default: { shape: [2], data: ["x", true] } }],
  ["another tensor", 2, { name: "OTHER", labels: ["a"] }],
])("ignores %s", (_name, position, entry) => {
  expect(input(position, entry)).toEqual(plain.inputs[position])
})

it("ignores a default whose shape no required input determines", () => {
  const open = { ...plain, inputs: [{ name: "O", datatype: "FP32", dims: [-1], optional: true }] }
  const entry = { name: "O", dims: ["n"], default: { element: 1 } }
  const { inputs } = Result.getOrThrow(merge(open, JSON.stringify({ inputs: [entry] })))
  expect(inputs).toEqual([{ name: "O", datatype: "FP32", dims: ["n"], optional: true }])
})

it("ignores errors that no model can declare, and duplicates", () => {
  const error = (tag: string, more = {}) => ({ tag, http_status: 400, grpc_code: "NOT_FOUND", schema: {}, ...more })
  const { errors } = merged({
    errors: [
      error("Known"),
      error("Known", { http_status: 500 }),
      error("a tag"),
      error("QueueFull"),
      error("Status", { http_status: 200 }),
      error("Code", { grpc_code: "constructor" }),
    ],
  })
  expect(errors?.map(({ tag, http }) => [tag, http])).toEqual([["Known", 400]])
})

it("refuses what is no document", () => {
  expect(refusal("{")).toBe("it is not JSON")
  expect(refusal("[]")).toMatch(/^Expected/)
  expect(refusal('{"inputs":[{"name":3}]}')).toContain("inputs")
  expect(refusal(`{"inputs":[${Array.from({ length: 5000 }, () => '{"name":"a"}').join(",")}]}`)).toContain("4096")
  expect(refusal(`"${"x".repeat(2 ** 20)}"`)).toBe("it has 1048578 characters, more than 1048576")
  const noisy = refusal(JSON.stringify({ inputs: `\u001b[2J\n${"x".repeat(9000)}` }))
  expect(noisy.length).toBeLessThanOrEqual(200)
  // oxlint-disable-next-line no-control-regex
  expect(noisy).not.toMatch(/[\u0000-\u001f]/)
})

it("a document that is deeper than the stack is read, or refused", () => {
  const deep = `{"inputs":[{"name":"TEXT","form":"json","schema":${'{"items":'.repeat(40_000)}{}${"}".repeat(40_000)}}]}`
  expect(["accepted", expect.any(String)]).toContainEqual(refusal(deep))
})

it("says that requests belong to sequences, and how long a sequence may be idle", () => {
  const fields = { inputs: { X: Tensor.FP32(3) }, outputs: { Y: Tensor.FP32(3) } }
  class Brief extends Model.Service<Brief>()("brief", { ...fields, sequence: { maxIdle: "30 seconds" } }) {}
  class Lasting extends Model.Service<Lasting>()("lasting", { ...fields, sequence: { maxIdle: Infinity } }) {}
  expect(ContractDocument.make(Brief.definition)?.document).toEqual({ sequence: { max_idle_microseconds: 30_000_000 } })
  expect(ContractDocument.make(Lasting.definition)?.document).toEqual({ sequence: {} })
  expect(declared(Brief.definition).sequence).toEqual({ maxIdle: 30_000_000 })
  expect(declared(Lasting.definition).sequence).toEqual({ maxIdle: undefined })
  expect(declared(Nothing.definition).sequence).toBe(false)
  expect(merged({ sequence: { max_idle_microseconds: 7 } }).sequence).toEqual({ maxIdle: 7 })
  expect(merged({ sequence: {} }).sequence).toEqual({ maxIdle: undefined })
  expect(merged({}).sequence).toBeUndefined()
  expect(refusal('{"sequence":{"max_idle_microseconds":0}}')).toContain("greater than 0")
  expect(refusal('{"sequence":true}')).toContain("sequence")
})

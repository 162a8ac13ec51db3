import { describe, expect, it } from "vitest"
import * as InputFile from "./InputFile.ts"
import type { ModelTraits } from "../target/ModelTraits.ts"

const traits: ModelTraits = {
  name: "m",
  platform: "",
  inputs: [
    { name: "IDS", datatype: "INT64", shape: [-1, -1], optional: false },
    { name: "TEXT", datatype: "BYTES", shape: [-1, 1], optional: false },
  ],
  outputs: [],
  maxBatchSize: 8,
  decoupled: false,
}

const read = (value: unknown) =>
  InputFile.read(typeof value === "string" ? value : JSON.stringify(value), { name: "m", version: "" }, traits).map(
    ({ inputs, parameters }) => ({
      parameters,
      inputs: inputs.map(({ name, shape, bytes }) => `${name}[${shape}] ${Buffer.from(bytes).toString("hex")}`),
    }),
  )

const ids = (...data: ReadonlyArray<number>) => ({ name: "IDS", datatype: "INT64", shape: [1, data.length], data })

describe("documents of the protocol", () => {
  it("one, with its parameters", () => {
    expect(read({ inputs: [ids(1, 2)], parameters: { priority: 3 } })).toEqual([
      { parameters: { priority: 3n }, inputs: ["IDS[1,2] 01000000000000000200000000000000"] },
    ])
  })

  it("several, and every digit of theirs", () => {
    const text = `[{"inputs":[${JSON.stringify(ids(0)).replace("[0]", "[9007199254740993]")}]},{"inputs":[]}]`
    expect(read(text)).toMatchObject([{ inputs: ["IDS[1,1] 0100000000002000"] }, { inputs: [] }])
  })
})

it("the form of perf_analyzer: with and without shapes, in streams and not", () => {
  const one = { IDS: { content: [1, 2], shape: [2] }, TEXT: ["a"] }
  const other = { IDS: { content: [3], shape: [1, 1] }, TEXT: { content: ["b"] } }
  const expected = [
    { inputs: ["IDS[1,2] 01000000000000000200000000000000", "TEXT[1,1] 0100000061"] },
    { inputs: ["IDS[1,1] 0300000000000000", "TEXT[1,1] 0100000062"] },
  ]
  expect(read({ data: [one, other] })).toMatchObject(expected)
  expect(read({ data: [[one], [other]] })).toMatchObject(expected)
})

it.each<readonly [string, unknown, string]>([
  ["what is no JSON", "{", "JSON"],
  ["nothing", [], "the file contains no request"],
  ["no inputs", {}, "inputs"],
  ["one bad request of two", [{ inputs: [] }, { inputs: [{}] }], "request 2: "],
  ["an unknown input", { data: [{ X: [1] }] }, "entry 1: the model 'm' has no input 'X'"],
  ["a shape that is missing", { data: [{ IDS: [1] }] }, "input 'IDS' is INT64[-1,-1] with dynamic dimensions"],
  ["content that is no array", { data: [{ TEXT: { content: { b64: "YQ==" } } }] }, "is not an array"],
])("%s is refused", (_, value, message) => {
  expect(() => read(value)).toThrow(message)
})

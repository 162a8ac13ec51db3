import { create, equals, fromJson, ScalarType } from "@bufbuild/protobuf"
import { toText } from "@bufbuild/protobuf/txtpb"
import { Result } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import * as ConfigArbitrary from "./ConfigArbitrary.fixture.ts"
import * as ConfigText from "./ConfigText.ts"

describe("the text format", () => {
  it.each([
    ["comments", '# first\nname: "a" # and last', { name: "a" }],
    ["strings in pieces, of both quotes, with escapes", `name: "a\\x41" 'b\\101"' "\\n"`, { name: 'aAbA"\n' }],
    ["messages with and without a colon", "dynamic_batching: {} response_cache { enable: true }", {}],
    ["both kinds of brackets", "input < name: 'X' > input { name: 'Y' }", { input: [{ name: "X" }, { name: "Y" }] }],
    ["lists", "input [ { name: 'X' dims: [ -1, 0x10, 010 ] } ]", { input: [{ dims: [-1n, 16n, 8n] }] }],
    ["separators", "name: 'a', max_batch_size: 4; platform: 'p';", { maxBatchSize: 4, platform: "p" }],
    [
      "enums by name and by number",
      "input { data_type: TYPE_FP32 } input { data_type: 8 }",
      {
        input: [{ dataType: 11 }, { dataType: 8 }],
      },
    ],
    [
      "entries of maps",
      "parameters { key: 'k' value { string_value: 'v' } }",
      {
        parameters: { k: { stringValue: "v" } },
      },
    ],
    ["carriage returns", "name: 'a'\r\nplatform: 'p'\r\n", { name: "a", platform: "p" }],
    ["a mark of byte order", "\uFEFFname: 'a'", { name: "a" }],
    ["nothing", "", { name: "" }],
  ])("has %s", (_, text, expected) => {
    expect(Result.getOrThrow(ConfigText.parse(text))).toMatchObject(expected)
  })
})

describe("errors", () => {
  it.each([
    [
      "an unknown field",
      'name: "a"\n\n  foo: 3\nplatform: "p"',
      3,
      3,
      'unknown field "foo" for message inference.ModelConfig',
    ],
    ["what comes behind a string", 'name: "it\'s"   foo: 3', 1, 16, 'unknown field "foo"'],
    ["what comes behind two strings", 'name: \'a\' "b\\"" max_batch_size: x', 1, 33, 'expected an integer, got "x"'],
    ["an unknown field of a part", "input [\n  { name: 'X' },\n  { nam: 'Y' }\n]", 3, 5, 'unknown field "nam"'],
    ["an unknown enum value", "input {\n  data_type: TYPE_X\n}", 2, 14, 'unknown enum value "TYPE_X"'],
    ["a number of the wrong kind", "max_batch_size: 1.5", 1, 17, 'expected an integer, got "1.5"'],
    ["a number out of range", "max_batch_size:\n 99999999999 # much", 2, 2, "out of range"],
    ["a field that comes twice", "name: 'a'\r\nname: 'b'\r\n", 2, 1, 'field "name" is repeated'],
    [
      "two of which one may be",
      "dynamic_batching {}\n\tsequence_batching {}",
      2,
      2,
      '"scheduling_choice" is already set',
    ],
    ["a missing comma", "input [\n  { name: 'X' }\n  { name: 'Y' }\n]", 3, 3, 'expected "," or "]"'],
    ["a string without an end", "name: 'a'\nplatform: 'p\n", 2, 11, "invalid U+000A in string"],
    ["a message without an end", "input {\n  name: 'X'\n", 3, 1, "unexpected end of input"],
    ["an illegal character", 'name: "a"\n  @', 2, 3, 'unexpected "@"'],
    ["a string where none may be", "name: 'X'\nmax_batch_size: 'four' ", 2, 17, "expected an integer"],
  ])("reports the position of %s", (_, text, line, column, message) => {
    expect(ConfigText.parse(text)).toMatchObject({
      failure: { line, column, message: expect.stringContaining(message) },
    })
  })
})

it("a mistake in a long line is found in no time", () => {
  const inputs = `input { name: "X" dims: 1 } `.repeat(500)
  const failure = { line: 1, column: inputs.length + 1 }
  expect(ConfigText.parse(`${inputs}foo: 1 ${inputs}`)).toMatchObject({ failure })
})

const scalar = (type: ScalarType | undefined): fc.Arbitrary<string | number | boolean> => {
  switch (type) {
    case ScalarType.STRING:
      return fc.string({ unit: "grapheme" })
    case ScalarType.BOOL:
      return fc.boolean()
    case ScalarType.INT32:
      return fc.integer()
    case ScalarType.UINT32:
      return fc.nat(2 ** 32 - 1)
    case ScalarType.INT64:
      return fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map(String)
    case ScalarType.UINT64:
      return fc.bigInt(0n, 2n ** 64n - 1n).map(String)
    case ScalarType.FLOAT:
      return fc.float().map((number) => (Number.isFinite(number) ? number : String(number)))
    case ScalarType.DOUBLE:
      return fc.double().map((number) => (Number.isFinite(number) ? number : String(number)))
    default:
      throw new Error(`no configuration has a ${type}`)
  }
}

const configurations = ConfigArbitrary.json(scalar).map((json) => fromJson(ModelConfigSchema, json))

it("every configuration that is printed is read back", () => {
  fc.assert(
    fc.property(configurations, (config) => {
      const text = toText(ModelConfigSchema, config)
      // Compared as text, in which NaN equals itself.
      expect(toText(ModelConfigSchema, Result.getOrThrow(ConfigText.parse(text)))).toBe(text)
    }),
    { numRuns: 200 },
  )
})

it("any text is read, or refused at a place that it has", () => {
  const texts = fc.tuple(configurations, fc.nat(), fc.nat(20), fc.string()).map(([config, at, length, inserted]) => {
    const text = toText(ModelConfigSchema, config)
    const offset = at % (text.length + 1)
    return text.slice(0, offset) + inserted + text.slice(offset + length)
  })
  fc.assert(
    fc.property(texts, (text) => {
      const parsed = ConfigText.parse(text)
      if (Result.isSuccess(parsed)) return
      const { line, column } = parsed.failure
      expect(column).toBeGreaterThan(0)
      expect((text.split("\n")[line - 1]?.length ?? -2) + 1).toBeGreaterThanOrEqual(column)
    }),
    { numRuns: 300 },
  )
})

it("a field that is unknown is found wherever it stands", () => {
  fc.assert(
    fc.property(configurations, fc.nat(), (config, at) => {
      const lines = toText(ModelConfigSchema, config).split("\n")
      const line = at % lines.length
      lines.splice(line, 0, "  no_such_field: 1")
      expect(ConfigText.parse(lines.join("\n"))).toMatchObject({ failure: { line: line + 1, column: 3 } })
    }),
    { numRuns: 100 },
  )
})

it("a configuration without anything is one", () => {
  expect(equals(ModelConfigSchema, Result.getOrThrow(ConfigText.parse("")), create(ModelConfigSchema))).toBe(true)
})

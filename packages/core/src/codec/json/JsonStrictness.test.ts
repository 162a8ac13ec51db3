/**
 * JSON that readers understand differently is refused: duplicate keys, strings that are not UTF-8, and NaN outside the
 * data of tensors.
 */
import { describe, expect, it } from "@effect/vitest"
import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import * as fc from "fast-check"
import * as ControlDocument from "./ControlDocument.ts"
import { readRequest, readResponse } from "./JsonDecoder.ts"
import { RequestTemplates } from "./RequestTemplates.ts"
import * as RegionDocument from "./RegionDocument.ts"
import * as SettingsDocument from "./SettingsDocument.ts"
import { invalidUtf8 } from "./Utf8.ts"

/** The bytes of a text. `~` stands for a byte that UTF-8 does not have. */
const bytesOf = (text: string) => Uint8Array.from(Buffer.from(text), (byte) => (byte === 0x7e ? 0xff : byte))

const templates = new RequestTemplates()

const readers = {
  request: readRequest,
  "request with templates": (bytes: Uint8Array) => templates.read(bytes),
  response: readResponse,
  control: ControlDocument.read,
  region: RegionDocument.read,
  settings: SettingsDocument.read,
}

const outcome = (kind: keyof typeof readers, text: string): string =>
  Result.match<unknown, { readonly _tag: string; readonly message: string }, string, string>(
    readers[kind](bytesOf(text)),
    { onFailure: ({ _tag, message }) => `${_tag}: ${message}`, onSuccess: () => "read" },
  )

const x = '{"name":"X","datatype":"FP32","shape":[1],"data":[1]}'

const problem = (reason: string, document = "request") =>
  `InvalidRequest: failed to parse the ${document} JSON buffer: ${reason}`

describe.each(["request", "request with templates"] as const)("a %s", (kind) => {
  it.each([
    ["id", `{"id":"1","inputs":[${x}],"id":"1"}`],
    ["inputs", `{"inputs":[${x}],"inputs":[]}`],
    ["inputs", String.raw`{"inputs":[],"\u0069nputs":[]}`],
    ["outputs", `{"inputs":[${x}],"outputs":[],"outputs":[]}`],
    ["parameters", `{"inputs":[${x}],"parameters":{},"parameters":{}}`],
    ["a", `{"inputs":[${x}],"parameters":{"a":1,"a":1}}`],
    ["shape", '{"inputs":[{"name":"X","datatype":"FP32","shape":[1],"shape":[1],"data":[1]}]}'],
    ["data", '{"inputs":[{"data":[1],"data":[1],"name":"X","datatype":"FP32","shape":[1]}]}'],
    ["b", '{"inputs":[{"name":"X","parameters":{"b":[],"b":1}}]}'],
    ["b", '{"inputs":[{"name":"X","parameters":{"b":1,"b":[]}}]}'],
    ["b", '{"inputs":[{"name":"X","parameters":{"b":[],"b":[]}}]}'],
    ["name", '{"inputs":[],"outputs":[{"name":"Y","name":"Z"}]}'],
    ["other", `{"other":1,"inputs":[${x}],"other":1}`],
    ["third", `{"first":1,"second":1,"third":1,"inputs":[${x}],"third":1}`],
    ["a".repeat(40) + "…", `{"${"a".repeat(50)}":1,"${"a".repeat(50)}":1}`],
  ])("with the duplicate key %.20s is refused", (key, text) => {
    expect(outcome(kind, text)).toContain(problem(`Duplicate object member '${key}' at `))
  })

  it("with too many unknown keys is refused", () => {
    const keys = (count: number) => Array.from({ length: count }, (_, index) => `"k${index}":0`).join()
    expect(outcome(kind, `{${keys(8192)},"inputs":[${x}]}`)).toBe("read")
    expect(outcome(kind, `{${keys(8193)},"inputs":[${x}]}`)).toContain(problem("more than 8192 members"))
  })

  it.each([
    '{"id":"a~","inputs":[]}',
    '{"~":1,"inputs":[]}',
    '{"more":"~","inputs":[]}',
    '{"more":[{"a":"~"}],"inputs":[]}',
    '{"more":[{"~":1}],"inputs":[]}',
    '{"parameters":{"a":"~"},"inputs":[]}',
    '{"parameters":{"~":1},"inputs":[]}',
    '{"inputs":[{"name":"~"}]}',
    '{"inputs":[{"name":"X","datatype":"BYTES","shape":[1],"data":["~"]}]}',
    String.raw`{"more":"\n\u00e4 ä \"~","inputs":[]}`,
  ])("that is not UTF-8 is refused: %s", (text) => {
    expect(outcome(kind, text)).toBe(problem(`Invalid encoding in string. at ${bytesOf(text).indexOf(0xff)}`))
  })

  it.each(["NaN", "Infinity", "-Infinity", "Inf", "-Inf"])("has %s only in the data of its tensors", (number) => {
    const text = number.replace("-", "")
    for (const document of [
      `{"parameters":{"a":${number}},"inputs":[]}`,
      `{"more":${number},"inputs":[]}`,
      `{"more":[{"a":[1,${number}]}],"inputs":[]}`,
      `{"id":${number},"inputs":[]}`,
      `{"inputs":[{"name":"X","shape":[${number}]}]}`,
      `{"inputs":[{"parameters":{"a":${number}}}]}`,
      `{"outputs":[${number}]}`,
    ]) {
      expect(outcome(kind, document), document).toBe(
        problem(`${text} outside the data of a tensor at ${document.indexOf(number)}`),
      )
    }
    for (const datatype of ["FP32", "FP64"]) {
      const head = `"name":"X","datatype":"${datatype}","shape":[2]`
      expect(outcome(kind, `{"inputs":[{${head},"data":[${number},[1]]}]}`)).toBe("read")
      expect(outcome(kind, `{"inputs":[{"data":[[${number}],1],${head}}]}`)).toBe("read")
    }
  })
})

it.each([
  ["control", "parameters", '{"parameters":{},"parameters":{}}'],
  ["control", "config", '{"parameters":{"config":"{}","config":"{}"}}'],
  ["control", "a", '{"parameters":{"a":1,"a":1}}'],
  ["region", "key", '{"key":"/a","key":"/b","byte_size":1}'],
  ["region", "byte_size", '{"key":"/a","byte_size":1,"byte_size":1}'],
  ["settings", "a", '{"a":1,"a":1}'],
  ["response", "id", '{"id":"1","id":"1","outputs":[]}'],
] as const)("a %s document with the duplicate key %s is refused", (kind, key, text) => {
  expect(outcome(kind, text)).toContain(`Duplicate object member '${key}' at `)
})

it.each([
  ["control", '{"parameters":{"config":"~"}}'],
  ["control", '{"more":"~"}'],
  ["region", '{"key":"/~","byte_size":1}'],
  ["settings", '{"a":"~"}'],
  ["settings", '{"a":["~"]}'],
] as const)("a %s document that is not UTF-8 is refused: %s", (kind, text) => {
  expect(outcome(kind, text)).toBe(problem(`Invalid encoding in string. at ${text.indexOf("~")}`))
})

it.each([
  ["control", '{"parameters":{"config":NaN}}'],
  ["region", '{"key":"/a","byte_size":NaN}'],
  ["settings", '{"a":NaN}'],
] as const)("a %s document with NaN is refused", (kind, text) => {
  expect(outcome(kind, text)).toBe(problem(`NaN outside the data of a tensor at ${text.indexOf("NaN")}`))
})

it("responses have any bytes and numbers, as other servers send them", () => {
  const output = '{"name":"Y","datatype":"BYTES","shape":[1],"data":["~"]}'
  const text = `{"id":"~","more":NaN,"parameters":{"a":NaN},"outputs":[${output}]}`
  const { parameters, outputs } = Result.getOrThrow(readResponse(bytesOf(text)))
  expect(parameters).toEqual({ a: Number.NaN })
  expect(outputs[0]?.content).toEqual(Uint8Array.of(1, 0, 0, 0, 0xff))
})

describe("UTF-8", () => {
  it("is what Node accepts", () => {
    const edges = [0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf]
    const bytes = fc.array(
      fc.constantFrom(...edges, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff),
    )
    const text = fc.string({ unit: "binary" }).map((string) => [...Buffer.from(string)])
    fc.assert(
      fc.property(fc.array(fc.oneof(bytes, text), { maxLength: 4 }), (parts) => {
        const whole = Uint8Array.from(parts.flat())
        expect(invalidUtf8(whole, 0, whole.length) === undefined).toBe(isUtf8(whole))
      }),
      { numRuns: 5000 },
    )
  })

  it("is checked in long texts, with the place of the first other byte", () => {
    const bytes = Uint8Array.from(Buffer.from("ä東".repeat(1000)))
    expect(invalidUtf8(bytes, 0, bytes.length)).toBeUndefined()
    expect(invalidUtf8(bytes, 0, bytes.length - 1)).toBe(bytes.length - 3)
    bytes[2000] = 0xff
    expect(invalidUtf8(bytes, 0, bytes.length)).toBe(2000)
  })

  it("is checked within the given range only", () => {
    const bytes = Uint8Array.of(0xff, 0xc3, 0xa4, 0xc3)
    expect(invalidUtf8(bytes, 1, 3)).toBeUndefined()
    expect(invalidUtf8(bytes, 1, 2)).toBe(1)
    expect(invalidUtf8(bytes, 1, 4)).toBe(3)
  })
})

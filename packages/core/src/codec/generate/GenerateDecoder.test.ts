/** The mapping of the generate extension (C30): from any JSON object to tensors and parameters, and its refusals. */
import { assert, describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import type { DataType } from "../../tensor/DataType.ts"
import { decodeGenerate } from "./GenerateDecoder.ts"
import { encodeGenerated } from "./GenerateEncoder.ts"
import type { Dim, TensorSpec } from "../../tensor/TensorSpec.ts"
import { encodeElements, TypedTensor } from "../../tensor/TypedTensor.ts"

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const spec = (name: string, datatype: DataType, ...dims: ReadonlyArray<Dim>): TensorSpec => ({
  name,
  datatype,
  dims,
  optional: false,
})

const model = (inputs: ReadonlyArray<TensorSpec>, maxBatchSize = 8) => ({
  name: "m",
  version: "1",
  signature: { inputs, outputs: [] },
  maxBatchSize,
})

const text = model([spec("TEXT", "BYTES", 1)])

const accepted = (text: string, of = model([])) => Result.getOrThrow(decodeGenerate(encoder.encode(text), of))

const refused = (body: string, of = text): string => {
  const read = decodeGenerate(encoder.encode(body), of)
  assert(Result.isFailure(read), `accepted: ${body.slice(0, 200)}`)
  return `${read.failure._tag}: ${read.failure.message}`
}

/** Shape and elements of the only input. */
const tensor = (value: string, datatype: DataType, dims: ReadonlyArray<Dim>, maxBatchSize = 8) => {
  const [input] = accepted(`{"X":${value}}`, model([spec("X", datatype, ...dims)], maxBatchSize)).inputs
  assert(input !== undefined)
  return { shape: input.shape, data: [...new TypedTensor(datatype, input.shape, input.bytes).data] }
}

const cannot = (value: string, dims: ReadonlyArray<Dim>, maxBatchSize = 0) =>
  expect(refused(`{"X":${value}}`, model([spec("X", "INT32", ...dims)], maxBatchSize))).toBe(
    "InvalidRequest: The schema can not convert input 'X' to tensor with proper shape",
  )

/** Elements as JSON has them, and the bytes that they are. */
interface Elements {
  readonly datatype: DataType
  readonly tokens: ReadonlyArray<string>
  readonly bytes: Uint8Array
}

const elementsOf = <A>(
  datatype: DataType,
  element: fc.Arbitrary<A>,
  bytes: (elements: Array<A>) => Uint8Array,
  token: (element: A) => string = String,
): fc.Arbitrary<Elements> =>
  fc.array(element).map((elements) => ({ datatype, tokens: elements.map(token), bytes: bytes(elements) }))

const raw = ({ buffer }: { readonly buffer: ArrayBuffer }) => new Uint8Array(buffer)

const finite = { noNaN: true, noDefaultInfinity: true }

const tensors = fc.oneof(
  elementsOf("INT8", fc.integer({ min: -128, max: 127 }), (all) => raw(Int8Array.from(all))),
  elementsOf("UINT16", fc.nat(0xffff), (all) => raw(Uint16Array.from(all))),
  elementsOf("INT32", fc.integer(), (all) => raw(Int32Array.from(all))),
  elementsOf("UINT32", fc.nat(0xffff_ffff), (all) => raw(Uint32Array.from(all))),
  elementsOf("INT64", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (all) => raw(BigInt64Array.from(all))),
  elementsOf("UINT64", fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (all) => raw(BigUint64Array.from(all))),
  elementsOf("BOOL", fc.boolean(), (all) => Uint8Array.from(all, Number)),
  // JSON.stringify drops the sign of a zero.
  elementsOf(
    "FP32",
    fc.float(finite),
    (all) => raw(Float32Array.from(all)),
    (value) => (Object.is(value, -0) ? "-0" : JSON.stringify(value)),
  ),
  elementsOf(
    "FP64",
    fc.double(finite),
    (all) => raw(Float64Array.from(all)),
    (value) => (Object.is(value, -0) ? "-0" : JSON.stringify(value)),
  ),
  elementsOf(
    "BYTES",
    fc.string({ unit: "binary" }),
    (all) => encodeElements(all.map((element) => encoder.encode(element))),
    JSON.stringify,
  ),
)

describe("the object", () => {
  it("C30: inputs become tensors, the id the id, everything else a parameter, nested ones too", () => {
    const body = `{"id":"7","temperature":0.5,"TEXT":"naïve","stream":true,
      "parameters":{"top_k":40,"large":18446744073709551615,"stop":"\\n","stream":false,"id":"inner","whole":1.0},"seed":-1}`
    expect(accepted(body, text)).toEqual({
      modelName: "m",
      modelVersion: "1",
      id: "7",
      parameters: {
        temperature: 0.5,
        stream: true,
        top_k: 40n,
        large: 2n ** 64n - 1n,
        stop: "\n",
        id: "inner",
        whole: 1,
        seed: -1n,
      },
      inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], bytes: encodeElements([encoder.encode("naïve")]) }],
      outputs: [],
    })
    expect(accepted("{}")).toMatchObject({ id: "", parameters: {}, inputs: [] })
  })

  it("an input under parameters is an input; one that is called id or parameters is found where it stands", () => {
    const named = model([spec("id", "INT32", 1), spec("parameters", "INT32", 1)])
    const { id, inputs, parameters } = accepted('{"id":1,"parameters":{"parameters":2,"k":3}}', named)
    expect([id, inputs.map(({ name }) => name), parameters]).toEqual(["", ["id", "parameters"], { k: 3n }])
  })

  it("refuses duplicate parameters and ids, and leaves duplicate inputs to validation", () => {
    for (const [key, document] of [
      ["id", '{"id":"a","id":"a"}'],
      ["k", '{"k":1,"k":1}'],
      ["k", '{"k":1,"\\u006b":2}'],
      ["parameters", '{"parameters":{},"parameters":{}}'],
    ] as const) {
      expect(refused(document, text)).toContain(
        `InvalidRequest: failed to parse the request JSON buffer: Duplicate object member '${key}' at`,
      )
    }
    expect(refused('{"parameters":{"k":1,"k":2}}', text)).toContain("Duplicate object member 'k' at 25")
    expect(accepted('{"TEXT":"x","TEXT":"y"}', text).inputs.length).toBe(2)
  })

  it("of a parameter at the top level and under parameters, the first counts", () => {
    expect(accepted('{"k":1,"parameters":{"k":2}}', text).parameters).toEqual({ k: 1n })
  })

  it("names that are special in JavaScript are names", () => {
    const { parameters } = accepted('{"__proto__":1,"constructor":2,"parameters":{"toString":3}}')
    expect(Object.entries(parameters)).toEqual([
      ["__proto__", 1n],
      ["constructor", 2n],
      ["toString", 3n],
    ])
  })

  it("refuses invalid parameters, with the keyword if nested", () => {
    const rule = "It should be either 'int', 'bool', or 'string'."
    const cases = [
      ['{"parameters":5}', "InvalidRequest: Expected JSON object for keyword: 'parameters'"],
      ['{"parameters":null}', "InvalidRequest: Expected JSON object for keyword: 'parameters'"],
      ['{"parameters":[{}]}', "InvalidRequest: Expected JSON object for keyword: 'parameters'"],
      [
        '{"parameters":{"nested":{}}}',
        `InvalidRequest: Converting keyword: 'parameters': parameter 'nested' has invalid type. ${rule}`,
      ],
      ['{"list":[1]}', `InvalidRequest: parameter 'list' has invalid type. ${rule}`],
      ['{"object":{"a":1}}', `InvalidRequest: parameter 'object' has invalid type. ${rule}`],
      ['{"nothing":null}', `InvalidRequest: parameter 'nothing' has invalid type. ${rule}`],
      [
        '{"parameters":{"TEXT":["a",["b"]]}}',
        "InvalidRequest: Converting keyword: 'parameters': The schema can not convert input 'TEXT' to tensor with proper shape",
      ],
      [
        '{"triton_x":1}',
        "InvalidRequest: parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
      ],
      [
        '{"priority":-1}',
        "MalformedRequest: Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
      ],
      [
        '{"sequence_start":1}',
        "MalformedRequest: Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
      ],
      ['{"id":7}', "MalformedRequest: Unable to parse 'id': attempt to access JSON non-string as string"],
      ["[1]", "MalformedRequest: Unable to parse 'request': attempt to access JSON non-object as object"],
    ] as const
    for (const [body, message] of cases) expect(refused(body), body).toBe(message)
  })

  it("C15: refuses invalid JSON like infer, at any position", () => {
    expect(refused("")).toBe("MalformedRequest: failed to parse the request JSON buffer: The document is empty. at 0")
    const whole = '{"id":"a","TEXT":["x"],"parameters":{"k":[}'
    for (let end = 1; end < whole.length; end++) {
      expect(refused(whole.slice(0, end)), whole.slice(0, end)).toMatch(
        /^MalformedRequest: failed to parse the request/,
      )
    }
    const syntax = ['{"TEXT":[["x"]', '{"TEXT":"x"} x', '{"TEXT":tru}', '{"parameters":[}', '{"X":1,}', '{"TEXT" "x"}']
    for (const body of syntax) expect(refused(body), body).toMatch(/^MalformedRequest: failed to parse the request/)
  })

  it("is bounded: parameters, inputs and depth", () => {
    const many = Array.from({ length: 5000 }, (_, index) => `"p${index}":1`).join()
    expect(refused(`{${many}}`)).toBe(
      "MalformedRequest: Unable to parse 'parameters': more than 4096 elements, the maximum allowed",
    )
    const twice = Array.from({ length: 5000 }, () => '"TEXT":"x"').join()
    expect(refused(`{${twice}}`)).toBe(
      "MalformedRequest: Unable to parse 'inputs': more than 4096 elements, the maximum allowed",
    )
    const deep = "[".repeat(100_000) + "]".repeat(100_000)
    expect(refused(`{"TEXT":${deep}}`)).toBe("InvalidRequest: JSON nesting depth exceeds maximum allowed limit (100)")
    expect(refused(`{"other":${deep}}`)).toContain("parameter 'other' has invalid type")
  })
})

describe("the shape", () => {
  it("C30: a value or a flat array takes what the fixed dims leave", () => {
    expect(tensor("5", "INT32", [1])).toEqual({ shape: [1, 1], data: [5] })
    expect(tensor("5", "INT32", [], 0)).toEqual({ shape: [], data: [5] })
    expect(tensor("[5]", "INT32", [])).toEqual({ shape: [1], data: [5] })
    expect(tensor("[1,2,3]", "INT32", ["n"])).toEqual({ shape: [1, 3], data: [1, 2, 3] })
    expect(tensor("5", "INT32", ["n", "m"], 0)).toEqual({ shape: [1, 1], data: [5] })
    expect(tensor("[1,2,3,4,5,6]", "INT32", [-1, 2], 0)).toEqual({ shape: [3, 2], data: [1, 2, 3, 4, 5, 6] })
    expect(tensor("[1,2,3,4]", "INT32", [-1, -1])).toEqual({ shape: [1, 1, 4], data: [1, 2, 3, 4] })
    expect(tensor("[]", "INT32", [-1])).toEqual({ shape: [1, 0], data: [] })
  })

  it("where no dim of the model varies, the batch dimension does", () => {
    expect(tensor("[1,2,3,4]", "INT32", [2])).toEqual({ shape: [2, 2], data: [1, 2, 3, 4] })
  })

  it("nested arrays are the innermost axes", () => {
    expect(tensor("[[1,2],[3,4]]", "INT32", [-1, -1])).toEqual({ shape: [1, 2, 2], data: [1, 2, 3, 4] })
    expect(tensor("[[1,2],[3,4]]", "INT32", [2])).toEqual({ shape: [2, 2], data: [1, 2, 3, 4] })
    expect(tensor("[[[1],[2]]]", "INT32", [2, 1])).toEqual({ shape: [1, 2, 1], data: [1, 2] })
    expect(tensor("[[],[]]", "INT32", [-1, -1], 0)).toEqual({ shape: [2, 0], data: [] })
  })

  it("C30: refuses what fits no shape of the model", () => {
    cannot("[1,2,3]", [2])
    cannot("[1,2,3]", [2], 8)
    cannot("[]", [1])
    cannot("[1,2,3,4]", [2])
    cannot("[[1]]", [1])
    cannot("[[1,2]]", [2, 1])
    cannot("1", [0])
    for (const uneven of ["[[1,2],[3]]", "[1,[2]]", "[[1],2]", "[[],[1]]", "[1,[]]", "[[[]],[]]"]) {
      cannot(uneven, [-1, -1])
    }
  })
})

describe("elements", () => {
  it("C12: 64-bit integers keep their digits, NaN and the infinities are numbers", () => {
    expect(tensor("-9223372036854775808", "INT64", [1]).data).toEqual([-(2n ** 63n)])
    expect(tensor("[18446744073709551615]", "UINT64", [1]).data).toEqual([2n ** 64n - 1n])
    expect(tensor("[NaN,Infinity,-Infinity]", "FP32", [-1]).data).toEqual([Number.NaN, Infinity, -Infinity])
    expect(tensor("NaN", "FP64", [1]).data).toEqual([Number.NaN])
  })

  it("C11: FP16 and BF16 have no JSON form", () => {
    for (const datatype of ["FP16", "BF16"] as const) {
      expect(refused('{"X":1}', model([spec("X", datatype, 1)]))).toBe(
        `InvalidRequest: receiving ${datatype} data via JSON is not supported. ` +
          "Please use the binary data format for input X",
      )
    }
  })

  it("of another type are refused as in infer", () => {
    const cases = [
      ["INT32", "true", "non-signed-integer as signed-integer: element 0 of 'X' is true, expected INT32"],
      ["FP32", '["1"]', "non-number as number: element 0 of 'X' is \"1\", expected FP32"],
      ["BOOL", "[true,0]", "non-boolean as boolean: element 1 of 'X' is 0, expected BOOL"],
      ["BYTES", "null", "non-string as string: element 0 of 'X' is null, expected BYTES"],
      ["BYTES", '{"a":[1]}', "non-string as string: element 0 of 'X' is {\"a\":[1]}, expected BYTES"],
    ] as const
    for (const [datatype, value, problem] of cases) {
      const subject = datatype === "BYTES" ? "JSON bytes array" : "'data'"
      expect(refused(`{"X":${value}}`, model([spec("X", datatype, -1)]))).toBe(
        `MalformedRequest: Unable to parse ${subject}: attempt to access JSON ${problem}`,
      )
    }
    expect(refused('{"X":256}', model([spec("X", "UINT8", 1)]))).toContain("integer out of range")
  })

  it("C30: what JSON.stringify writes of a tensor is that tensor, flat and nested, and so is what the encoder writes", () => {
    fc.assert(
      fc.property(tensors, fc.boolean(), ({ datatype, tokens, bytes }, isNested) => {
        const nested = isNested && tokens.length % 2 === 0 && tokens.length > 0
        const rows = Array.from({ length: tokens.length / 2 }, (_, row) => `[${tokens.slice(row * 2, row * 2 + 2)}]`)
        const inputs = [spec("X", datatype, ...(nested ? [-1, 2] : [-1]))]
        const { inputs: read } = accepted(`{"X":[${nested ? rows : tokens}]}`, model(inputs, 0))
        const shape = nested ? [rows.length, 2] : [tokens.length]
        expect(read).toEqual([{ name: "X", datatype, shape, bytes }])

        const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs: read }
        const { inputs: repeated } = accepted(
          decoder.decode(Result.getOrThrow(encodeGenerated(response))),
          model([spec("X", datatype, -1)], 0),
        )
        expect(repeated).toEqual([{ name: "X", datatype, shape: [tokens.length], bytes }])
      }),
      { numRuns: 500 },
    )
  })

  it("never breaks on JSON of any other kind", () => {
    const specs = [spec("a", "INT32", -1), spec("b", "BYTES", 1), spec("parameters", "FP32", 2)]
    const keys = fc.constantFrom("a", "b", "id", "parameters", "other")
    fc.assert(
      fc.property(fc.dictionary(keys, fc.jsonValue()), (value) => {
        decodeGenerate(encoder.encode(JSON.stringify(value)), model(specs))
      }),
      { numRuns: 500 },
    )
  })
})

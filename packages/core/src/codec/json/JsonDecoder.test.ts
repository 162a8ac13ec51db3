import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import type { DataType, ElementArrays } from "../../tensor/DataType.ts"
import { readRequest, readResponse } from "./JsonDecoder.ts"
import { writeResponse } from "./JsonEncoder.ts"
import { JsonReader } from "./JsonReader.ts"
import { encodeElements, TypedTensor } from "../../tensor/TypedTensor.ts"

const encoder = new TextEncoder()
const decoder = new TextDecoder()

const accepted = (text: string) => Result.getOrThrow(readRequest(encoder.encode(text)))

const refused = (text: string): string => {
  const read = readRequest(encoder.encode(text))
  assert(Result.isFailure(read), `accepted: ${text.slice(0, 200)}`)
  return `${read.failure._tag}: ${read.failure.message}`
}

const withInput = (datatype: string, shape: ReadonlyArray<number>, data: string) =>
  `{"inputs":[{"name":"X","shape":[${shape.join()}],"datatype":"${datatype}","data":${data}}]}`

/** The elements of an input's data. */
const elements = <D extends DataType>(datatype: D, shape: ReadonlyArray<number>, data: string): ElementArrays[D] => {
  const content = accepted(withInput(datatype, shape, data)).inputs[0]?.content
  assert(content instanceof Uint8Array)
  return new TypedTensor<D>(datatype, shape, content).data
}

const written = (datatype: string, bytes: Uint8Array, count: number): string => {
  const outputs = [{ name: "Y", datatype, shape: [count], bytes }]
  const response = { modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs }
  const text = decoder.decode(Result.getOrThrow(writeResponse(response, [])))
  const data = /"data":\[(.*)\]\}\]\}$/s.exec(text)?.[1]
  assert(data !== undefined, text)
  return data
}

describe("numbers", () => {
  it("FP64: what JSON.parse reads", () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true, noDefaultInfinity: true })), (numbers) => {
        const text = JSON.stringify(numbers)
        assert.deepStrictEqual([...elements("FP64", [numbers.length], text)], JSON.parse(text))
      }),
    )
  })

  it("FP32: the nearest to what JSON.parse reads, for any digits and exponents", () => {
    const digits = fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?([eE][+-]?[0-9]{1,2})?$/)
    fc.assert(
      fc.property(digits, (text) => {
        assert.deepStrictEqual([...elements("FP32", [1], `[${text}]`)], [Math.fround(JSON.parse(text))])
        assert.deepStrictEqual([...elements("FP64", [1], `[${text}]`)], [JSON.parse(text)])
      }),
      { numRuns: 2000 },
    )
  })

  it("FP64: midpoints between two values, and their neighbours, to any number of digits", () => {
    const integer = fc.bigInt({ min: 2n ** 52n, max: 2n ** 53n - 1n })
    fc.assert(
      fc.property(integer, fc.nat(20), fc.constantFrom(-1n, 0n, 1n), (mantissa, shift, beside) => {
        // Exactly half way to the next double, once as a large integer and once as a long fraction.
        const large = String((2n * mantissa + 1n) * 2n ** BigInt(shift) + beside)
        const digits = String((2n * mantissa + 1n) * 5n ** BigInt(shift) + beside)
        for (const text of [large, `${digits}e-${shift}`, `0.${digits}`, `-0.000${large}`]) {
          assert.strictEqual(elements("FP64", [1], `[${text}]`)[0], Number(text), text)
        }
      }),
      { numRuns: 2000 },
    )
  })

  it("FP32: midpoints between two values, and their neighbours, round as a double does", () => {
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true, min: 2 ** -100, max: 2 ** 100 }), (value) => {
        const midpoint = (value + next(value)) / 2
        for (const number of [midpoint, midpoint * (1 + 2 ** -52), midpoint * (1 - 2 ** -53), value]) {
          for (const text of [String(number), number.toPrecision(21), number.toExponential(20)]) {
            assert.strictEqual(elements("FP32", [1], `[${text}]`)[0], Math.fround(Number(text)), text)
          }
        }
      }),
    )
  })

  it("FP32: written with the fewest digits that read back, from every bit pattern", () => {
    const bits = fc.oneof(fc.integer({ min: 0, max: 0xffff_ffff }), fc.float().map(bitsOf))
    fc.assert(
      fc.property(bits, (pattern) => {
        const words = Uint32Array.of(pattern)
        const value = new Float32Array(words.buffer)[0] ?? 0
        const text = written("FP32", new Uint8Array(words.buffer), 1)
        assert.deepStrictEqual([...elements("FP32", [1], `[${text}]`)], [value])
        if (Number.isFinite(value) && value !== 0) {
          assert.strictEqual(Number(text), Number(text.replace(/^-/, "")) * Math.sign(value))
          assert.strictEqual(significant(text), shortest(value), text)
        }
      }),
      { numRuns: 3000 },
    )
  })

  it("NaN, infinities and the sign of zero go in and out", () => {
    for (const datatype of ["FP32", "FP64"] as const) {
      const data = elements(datatype, [6], "[NaN, Infinity,-Infinity,Inf,-0,-0.0]")
      assert.deepStrictEqual([...data], [Number.NaN, Infinity, -Infinity, Infinity, -0, -0])
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
      assert.strictEqual(written(datatype, bytes, 6), "NaN,Infinity,-Infinity,Infinity,-0.0,-0.0")
    }
  })

  it("64-bit integers keep all digits", () => {
    assert.deepStrictEqual(
      [...elements("INT64", [4], "[9223372036854775807,-9223372036854775808,-1,9007199254740993]")],
      [9223372036854775807n, -9223372036854775808n, -1n, 9007199254740993n],
    )
    assert.deepStrictEqual(
      [...elements("UINT64", [2], "[18446744073709551615,4294967296]")],
      [2n ** 64n - 1n, 2n ** 32n],
    )
    for (const [datatype, range] of [
      ["INT64", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
      ["UINT64", fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
    ] as const) {
      const small = fc.bigInt({ min: datatype === "INT64" ? -(2n ** 54n) : 0n, max: 2n ** 54n })
      fc.assert(
        fc.property(fc.array(fc.oneof(range, small)), (numbers) => {
          const data = elements(datatype, [numbers.length], `[${numbers.join()}]`)
          assert.deepStrictEqual([...data], numbers)
          const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
          assert.strictEqual(written(datatype, bytes, numbers.length), numbers.join())
        }),
      )
    }
  })

  it("small integers go in and out in all their range, and not beyond", () => {
    const ranges = {
      INT8: [-128, 127],
      INT16: [-32768, 32767],
      INT32: [-2147483648, 2147483647],
      UINT8: [0, 255],
      UINT16: [0, 65535],
      UINT32: [0, 4294967295],
    } as const
    for (const datatype of ["INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"] as const) {
      const [min, max] = ranges[datatype]
      fc.assert(
        fc.property(fc.array(fc.double({ min, max, noNaN: true }).map(Math.trunc)), (numbers) => {
          const data = elements(datatype, [numbers.length], JSON.stringify(numbers))
          assert.deepStrictEqual(
            [...data],
            numbers.map((value) => value + 0),
          )
          const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
          assert.deepStrictEqual(JSON.parse(`[${written(datatype, bytes, numbers.length)}]`), [...data])
        }),
      )
      assert.deepStrictEqual([...elements(datatype, [2], `[${min},${max}]`)], [min, max])
      for (const value of [min - 1, max + 1]) {
        const isNoInteger = value < 0 && min === 0
        const reason = isNoInteger
          ? "attempt to access JSON non-unsigned-integer as unsigned-integer"
          : "integer out of range"
        const problem = `${reason}: element 1 of 'X' is ${value}, expected ${datatype}`
        assert.strictEqual(
          refused(withInput(datatype, [2], `[0,${value}]`)),
          `MalformedRequest: Unable to parse 'data': ${problem}`,
        )
      }
    }
  })

  it("a fraction or an exponent is not an integer", () => {
    for (const datatype of ["INT8", "INT32", "UINT32", "INT64", "UINT64"]) {
      const kind = datatype.startsWith("U") ? "unsigned-integer" : "signed-integer"
      for (const value of ["1.5", "1.0", "1e3", "NaN", '"1"', "null", "[1,{}]"]) {
        const problem = refused(withInput(datatype, [2], value.startsWith("[") ? "[1,{}]" : `[1,${value}]`))
        assert.include(
          problem,
          `Unable to parse 'data': attempt to access JSON non-${kind} as ${kind}: element 1 of 'X'`,
        )
      }
    }
    for (const [datatype, value] of [
      ["INT64", "9223372036854775808"],
      ["INT64", "-9223372036854775809"],
      ["UINT64", "18446744073709551616"],
      ["UINT64", "-1"],
      ["UINT64", "9".repeat(100_000)],
    ] as const) {
      const kind = datatype.startsWith("U") ? "unsigned-integer" : "signed-integer"
      const problem = refused(withInput(datatype, [1], `[${value}]`))
      assert.include(problem, `attempt to access JSON non-${kind} as ${kind}: element 0 of 'X' is`)
    }
    assert.strictEqual(elements("INT32", [1], "[-0]")[0], 0)
  })

  it("numbers that are not JSON are refused", () => {
    for (const datatype of ["FP32", "INT32", "INT64"]) {
      for (const text of [
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "--1",
        "0x10",
        "1,",
        "",
        "1 2",
        "-",
        "Nan",
        "Infinit",
        "1_0",
      ]) {
        assert.include(refused(withInput(datatype, [1], `[${text},1]`)), "MalformedRequest: ", text)
      }
    }
    assert.include(refused(withInput("FP64", [1], "[1e400]")), "Number too big to be stored in double. at")
  })
})

describe("booleans and strings", () => {
  it("BOOL is true and false, nothing else", () => {
    assert.deepStrictEqual([...elements("BOOL", [2, 1], "[[true],[ false ]]")], [1, 0])
    assert.strictEqual(written("BOOL", Uint8Array.of(1, 0), 2), "true,false")
    assert.include(refused(withInput("BOOL", [1], "[1]")), "attempt to access JSON non-boolean as boolean")
    assert.include(refused(withInput("BOOL", [1], "[truth]")), "Invalid value.")
  })

  it("BYTES are UTF-8 with a length before each, and back", () => {
    const text = fc.string({ unit: "binary" })
    fc.assert(
      fc.property(fc.array(text), (strings) => {
        const escaped = (string: string) =>
          `"${[...Array(string.length).keys()].map((at) => `\\u${string.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`
        const expected = encodeElements(strings.map((string) => encoder.encode(string)))
        for (const data of [JSON.stringify(strings), `[${strings.map(escaped).join(" , ")}]`]) {
          const content = accepted(withInput("BYTES", [strings.length], data)).inputs[0]?.content
          assert.deepStrictEqual(content, expected)
        }
        assert.deepStrictEqual(JSON.parse(`[${written("BYTES", expected, strings.length)}]`), strings)
      }),
    )
  })

  it("a byte order mark stays in the texts that begin with one", () => {
    const { id, inputs } = accepted(
      `{"id":"\uFEFFa","inputs":[{"name":"\uFEFF","shape":[0],"datatype":"FP32","data":[]}]}`,
    )
    assert.deepStrictEqual([id, inputs[0]?.name], ["\uFEFFa", "\uFEFF"])
  })

  it("every short escape is known, and no other", () => {
    const data = elements("BYTES", [1], String.raw`["\"\\\/\b\f\n\r\t"]`)
    assert.deepStrictEqual(decoder.decode(data[0]), '"\\/\b\f\n\r\t')
    assert.include(refused(withInput("BYTES", [1], String.raw`["\x"]`)), "Invalid escape character in string.")
    assert.include(refused(withInput("BYTES", [1], String.raw`["\u12g4"]`)), "Incorrect hex digit after \\u escape")
    assert.include(refused(withInput("BYTES", [1], String.raw`["\u12"]`)), "Incorrect hex digit after \\u escape")
    for (const lone of [String.raw`\ud800`, String.raw`\udc00`, String.raw`\ud800\ud800`, String.raw`\ud800x`]) {
      assert.include(refused(withInput("BYTES", [1], `["${lone}"]`)), "The surrogate pair in string is invalid.")
    }
    assert.include(refused(withInput("BYTES", [1], '["a\nb"]')), "Invalid encoding in string.")
    assert.include(refused(withInput("BYTES", [1], "[1]")), "attempt to access JSON non-string as string")
  })

  it("JSON cannot represent bytes that are not UTF-8", () => {
    const bytes = encodeElements([Uint8Array.of(0x61), Uint8Array.of(0xff)])
    const outputs = [{ name: "Y", datatype: "BYTES", shape: [2], bytes }]
    const result = writeResponse({ modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs }, [])
    assert(Result.isFailure(result))
    assert.strictEqual(
      result.failure.message,
      "element 1 of output 'Y' is not UTF-8 text and cannot be sent as JSON. Please use the binary data format for output Y",
    )
  })

  it("FP16 and BF16 have no JSON form", () => {
    for (const datatype of ["FP16", "BF16"]) {
      const advice = "Please use the binary data format for"
      assert.strictEqual(
        refused(withInput(datatype, [1], "[1]")),
        `InvalidRequest: receiving ${datatype} data via JSON is not supported. ${advice} input X`,
      )
      const outputs = [{ name: "Y", datatype, shape: [1], bytes: new Uint8Array(2) }]
      const result = writeResponse({ modelName: "m", modelVersion: "1", id: "", parameters: {}, outputs }, [])
      assert(Result.isFailure(result))
      assert.strictEqual(
        result.failure.message,
        `sending ${datatype} data via JSON is not supported. ${advice} output Y`,
      )
    }
  })
})

describe("shape and nesting", () => {
  it("flat and nested data are the same", () => {
    const expected = [1, 2, 3, 4]
    for (const data of ["[1,2,3,4]", "[[1,2],[3,4]]", "[ [ [1] , [2] ] ,\n[[3],[4]] ]", "[[1,2,3],4]"]) {
      assert.deepStrictEqual([...elements("INT32", [2, 2], data)], expected)
    }
    assert.deepStrictEqual([...elements("INT32", [0, 2], "[]")], [])
    assert.deepStrictEqual([...elements("INT32", [2, 0], "[[],[]]")], [])
    assert.deepStrictEqual([...elements("INT32", [], "[5]")], [5])
  })

  it("keys may come in any order", () => {
    for (const text of [
      '{"data":[1,2],"shape":[2],"datatype":"INT32","name":"X"}',
      '{"name":"X","data":[[1],[2]],"datatype":"INT32","extra":{"data":[{}]},"shape":[2]}',
    ]) {
      const { inputs } = accepted(`{"outputs":[{"name":"Y"}],"inputs":[${text}],"id":"a"}`)
      assert.deepStrictEqual(
        inputs.map(({ name, datatype, shape, content }) => [name, datatype, shape, content]),
        [["X", "INT32", [2], Uint8Array.of(1, 0, 0, 0, 2, 0, 0, 0)]],
      )
    }
  })

  it("the data must have as many elements as the shape", () => {
    const tooFew = "MalformedRequest: Failed to parse 'data' field: shape does not match true shape"
    const tooMany = "MalformedRequest: Unable to parse 'data': Shape does not match true shape of 'data' field"
    for (const datatype of ["INT8", "INT64", "FP32"]) {
      assert.strictEqual(refused(withInput(datatype, [3], "[1,2]")), tooFew)
      assert.strictEqual(refused(withInput(datatype, [3], "[]")), tooFew)
      assert.strictEqual(refused(withInput(datatype, [1_000_000_000_000], "[1,2]")), tooFew)
      assert.strictEqual(refused(withInput(datatype, [2], "[1,2,3]")), tooMany)
      assert.strictEqual(refused(withInput(datatype, [0], "[[1]]")), tooMany)
    }
  })

  it("dims are whole numbers that are not negative", () => {
    const text = "Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer"
    for (const dim of ["-1", "1.5", "1e2", '"2"', "null", "18446744073709551616"]) {
      const problem = refused(`{"inputs":[{"name":"X","shape":[${dim}],"datatype":"INT32","data":[1]}]}`)
      assert.include(problem, `MalformedRequest: ${text}`)
    }
  })

  it("data may nest 99 deep; other values as deep as they like, up to a million", () => {
    const nested = (depth: number) => `${"[".repeat(depth)}1${"]".repeat(depth)}`
    assert.deepStrictEqual([...elements("INT32", [1], nested(99))], [1])
    const limit = "InvalidRequest: JSON nesting depth exceeds maximum allowed limit (100)"
    assert.strictEqual(refused(withInput("INT32", [1], nested(100))), limit)
    assert.strictEqual(refused(withInput("INT32", [1], "[".repeat(250_000))), limit)
    accepted(`{"other":${nested(250_000)},"inputs":[]}`)
    accepted(`{"other":${'{"a":'.repeat(250_000)}1${"}".repeat(250_000)},"inputs":[]}`)
    assert.include(refused(`{"other":${nested(1_000_001)},"inputs":[]}`), "JSON nesting depth exceeds")
  })

  it("a datatype that does not exist, and a shape beyond counting, are left to the check against the model", () => {
    assert.strictEqual(accepted(withInput("FP8", [1], "[1]")).inputs[0]?.datatype, "FP8")
    for (const shape of [
      [2 ** 40, 2 ** 40],
      [2 ** 31, 2 ** 30],
    ])
      assert.deepStrictEqual(accepted(withInput("FP32", shape, "[1]")).inputs[0]?.content, new Uint8Array())
  })
})

describe("documents", () => {
  it("syntax errors say what and where", () => {
    const at = (text: string) =>
      refused(text).replace("MalformedRequest: failed to parse the request JSON buffer: ", "")
    assert.strictEqual(at(""), "The document is empty. at 0")
    assert.strictEqual(at(" \n"), "The document is empty. at 2")
    assert.strictEqual(at("{"), "Missing a name for object member. at 1")
    assert.strictEqual(at('{"id"}'), "Missing a colon after a name of object member. at 5")
    assert.strictEqual(at('{"id":}'), "Invalid value. at 6")
    assert.strictEqual(at('{"id":"a" "b"}'), "Missing a comma or } after an object member. at 10")
    assert.strictEqual(at('{"a":[1 2]}'), "Missing a comma or ] after an array element. at 8")
    assert.strictEqual(at('{"a":"b'), "Missing a closing quotation mark in string. at 5")
    assert.strictEqual(at('{"inputs":[]} x'), "The document root must not be followed by other values. at 14")
    assert.strictEqual(at('{"a":1.x}'), "Miss fraction part in number. at 7")
    assert.strictEqual(at('{"a":1ex}'), "Miss exponent in number. at 7")
  })

  it("names the field with a wrong type", () => {
    const cases = {
      "{}": "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
      "[]": "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
      null: "Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
      '{"inputs":3}': "Unable to parse 'inputs': attempt to access JSON non-array as array",
      '{"inputs":[3]}': "Unable to parse 'name': attempt to access non-existing object member 'name'",
      '{"inputs":[],"parameters":3}': "Unable to parse 'parameters': attempt to access JSON non-object as object",
      '{"inputs":[],"id":7}': "Unable to parse 'id': attempt to access JSON non-string as string",
      '{"inputs":[],"outputs":{}}': "Unable to parse 'outputs': attempt to access JSON non-array as array",
      '{"inputs":[],"outputs":[{}]}': "Unable to parse 'name': attempt to access non-existing object member 'name'",
      '{"inputs":[{}]}': "Unable to parse 'name': attempt to access non-existing object member 'name'",
      '{"inputs":[{"name":"X"}]}':
        "Unable to parse 'datatype': attempt to access non-existing object member 'datatype'",
      '{"inputs":[],"parameters":{"binary_data_output":1}}':
        "Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean",
      '{"inputs":[{"name":"X","shape":[1],"datatype":"INT8","data":1}]}':
        "Unable to parse 'data': attempt to access JSON non-array as array",
      '{"inputs":[{"name":"X","shape":[1],"datatype":"INT8","parameters":{"binary_data_size":-1}}]}':
        "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
      '{"inputs":[{"name":"X","shape":[1],"datatype":"INT8","parameters":{"binary_data_size":[1]}}]}':
        "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
      '{"inputs":[],"outputs":[{"name":"Y","parameters":{"binary_data":"yes"}}]}':
        "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
      '{"inputs":[],"outputs":[{"name":"Y","parameters":{"binary_data":null}}]}':
        "Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
      '{"inputs":[],"outputs":[{"name":"Y","parameters":{"classification":1.5}}]}':
        "Unable to parse 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
    }
    for (const [text, expected] of Object.entries(cases))
      assert.strictEqual(refused(text), `MalformedRequest: ${expected}`)
  })

  it("ignores unknown members of documents and tensors", () => {
    const tensor = '"name":"X","shape":[1],"datatype":"INT8","data":[1]'
    const unknown = '"other":[{}],"parameters":{"a":[1],"b":{},"c":null,"d":"e"}'
    const output = `{"name":"Y",${unknown}}`
    const { inputs, outputs } = accepted(`{"x":{},"inputs":[{${unknown},${tensor}}],"outputs":[${output}]}`)
    assert.deepStrictEqual(inputs, [{ name: "X", datatype: "INT8", shape: [1], content: Uint8Array.of(1) }])
    assert.deepStrictEqual(outputs, [{ name: "Y", binary: undefined }])
  })

  it("millions of names, parameters or dims are refused, not collected", () => {
    const many = (element: string) => Array.from({ length: 5000 }, () => element).join()
    const names = Array.from({ length: 5000 }, (_, index) => `"p${index}":1`).join()
    const dims = `{"name":"X","datatype":"INT8","data":[1],"shape":[${many("1")}]}`
    for (const [field, text] of [
      ["inputs", `{"inputs":[${many('{"name":"X","shape":[1],"datatype":"INT8","data":[1]}')}]}`],
      ["outputs", `{"inputs":[],"outputs":[${many('{"name":"Y"}')}]}`],
      ["parameters", `{"inputs":[],"parameters":{${names}}}`],
      ["shape", `{"inputs":[${dims}]}`],
    ] as const) {
      const limit = "more than 4096 elements, the maximum allowed"
      assert.strictEqual(refused(text), `MalformedRequest: Unable to parse '${field}': ${limit}`)
    }
  })

  it("an input has one source of data", () => {
    const rule =
      "InvalidRequest: Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', " +
      "'shared_memory_region' in 'parameters'. But "
    const tensor = (rest: string) => `{"inputs":[{"name":"X","shape":[1],"datatype":"INT8"${rest}}]}`
    assert.strictEqual(refused(tensor("")), `${rule}no field is set`)
    assert.strictEqual(
      refused(tensor(',"data":[1],"parameters":{"binary_data_size":1}')),
      `${rule}'data', 'binary_data_size' in 'parameters' are set`,
    )
    assert.strictEqual(
      refused(tensor(',"data":[1],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":1}')),
      `${rule}'data', 'shared_memory_region' in 'parameters' are set`,
    )
  })

  it("a tensor may be in a region", () => {
    const region = '"parameters":{"shared_memory_region":"r","shared_memory_byte_size":4,"shared_memory_offset":2}'
    const { inputs, outputs } = accepted(
      `{"inputs":[{"name":"X","shape":[1],"datatype":"FP16",${region}}],"outputs":[{"name":"Y",${region}}]}`,
    )
    const reference = { name: "r", byteSize: 4, offset: 2 }
    assert.deepStrictEqual(inputs, [{ name: "X", datatype: "FP16", shape: [1], content: reference }])
    assert.deepStrictEqual(outputs, [{ name: "Y", binary: undefined, region: reference }])
    const output = (parameters: string) =>
      refused(`{"inputs":[],"outputs":[{"name":"Y","parameters":{${parameters}}}]}`)
    const name = '"shared_memory_region":"r"'
    const size = '"shared_memory_byte_size":4'
    const cannot = (field: string, kind: string) =>
      `MalformedRequest: Unable to parse '${field}': attempt to access JSON non-${kind} as ${kind}`
    for (const [parameters, problem] of [
      [
        `${name},${size},"classification":1`,
        "InvalidRequest: Output can't set both 'shared_memory_region' and 'classification'",
      ],
      [
        `${name},${size},"binary_data":true`,
        "InvalidRequest: Output can't set both 'shared_memory_region' and 'binary_data'",
      ],
      [name, "InvalidRequest: 'shared_memory_byte_size' must be specified along with 'shared_memory_region' parameter"],
      [size, "InvalidRequest: 'shared_memory_byte_size' can not be specified without 'shared_memory_region' parameter"],
      [
        '"shared_memory_offset":0',
        "InvalidRequest: 'shared_memory_offset' can not be specified without 'shared_memory_region' parameter",
      ],
      [`"shared_memory_region":1,${size}`, cannot("shared_memory_region", "string")],
      [`${name},"shared_memory_byte_size":"4"`, cannot("shared_memory_byte_size", "unsigned-integer")],
      [`${name},${size},"shared_memory_offset":-1`, cannot("shared_memory_offset", "unsigned-integer")],
    ] as const)
      assert.strictEqual(output(parameters), problem)
    assert.isString(output(`${name},${size},"binary_data":"no"`))
  })

  it("parameters keep their types; outputs say how they are sent", () => {
    const { parameters, outputs, binaryOutputs } = accepted(
      '{"parameters":{"i":3,"u":18446744073709551615,"d":3.0,"n":-1e3,"b":true,"s":"x\\u00e4","__proto__":"p",' +
        '"binary_data_output":true},"inputs":[],' +
        '"outputs":[{"name":"A"},{"name":"B","parameters":{"binary_data":false}}]}',
    )
    assert.deepStrictEqual(Object.entries(parameters), [
      ["i", 3n],
      ["u", 2n ** 64n - 1n],
      ["d", 3],
      ["n", -1000],
      ["b", true],
      ["s", "xä"],
      ["__proto__", "p"],
    ])
    assert.deepStrictEqual(outputs, [
      { name: "A", binary: undefined },
      { name: "B", binary: false },
    ])
    assert.strictEqual(binaryOutputs, true)
    for (const value of ["null", "[]", "{}"]) {
      assert.strictEqual(
        refused(`{"inputs":[],"parameters":{"p":${value}}}`),
        "InvalidRequest: parameter 'p' has invalid type. It should be either 'int', 'bool', or 'string'.",
      )
    }
    for (const value of ["1.5", '"3"', "true"]) {
      assert.strictEqual(
        refused(`{"inputs":[],"outputs":[{"name":"A","parameters":{"classification":${value}}}]}`),
        "MalformedRequest: Unable to parse 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
      )
    }
  })

  it("skips any JSON that JSON.parse accepts, to the exact byte", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        const reader = new JsonReader(encoder.encode(` ${text}`), "request")
        reader.skip()
        reader.end()
        assert.strictEqual(reader.position, encoder.encode(text).length + 1)
      }),
    )
  })

  it("truncated or mutated text is refused or read, never a crash", () => {
    const text = encoder.encode(
      '{"id":"1\\u00e4","parameters":{"p":1.5e3},"inputs":[{"name":"X","shape":[2,2],"datatype":"FP32","data":[[1,-2.5],' +
        '[3e1,NaN]]},{"name":"S","datatype":"BYTES","data":["a\\n","\\ud83d\\ude00"],"shape":[2]},' +
        '{"name":"L","shape":[1],"datatype":"INT64","data":[-9223372036854775808]}],"outputs":[{"name":"Y"}]}',
    )
    for (let end = 0; end < text.length; end++) assert(Result.isFailure(readRequest(text.subarray(0, end))))
    const mutation = fc.record({ at: fc.nat(text.length - 1), byte: fc.nat(255) })
    fc.assert(
      fc.property(fc.array(mutation, { minLength: 1, maxLength: 4 }), (mutations) => {
        const mutated = text.slice()
        for (const { at, byte } of mutations) mutated[at] = byte
        readRequest(mutated)
        readResponse(mutated)
      }),
      { numRuns: 3000 },
    )
  })

  it("a response is written in the order that clients know", () => {
    const outputs = [{ name: "Y", datatype: "INT8", shape: [1, 2], bytes: Uint8Array.of(1, 255) }]
    const response = { modelName: "m", modelVersion: "2", id: 'a"b', parameters: { k: 1n, d: 2 }, outputs }
    const text = decoder.decode(Result.getOrThrow(writeResponse(response, [])))
    assert.strictEqual(
      text,
      '{"id":"a\\"b","model_name":"m","model_version":"2","parameters":{"k":1,"d":2.0},' +
        '"outputs":[{"name":"Y","datatype":"INT8","shape":[1,2],"data":[1,-1]}]}',
    )
  })

  it("responses of other servers may leave out members or set them to null", () => {
    const text =
      '{"model_name":"m","model_version":null,"parameters":{"a":null,"b":{},"c":"x"},"outputs":' +
      '[{"name":"Y","parameters":null,"shape":[1],"datatype":"INT32","data":[3]}]}'
    const read = Result.getOrThrow(readResponse(encoder.encode(text)))
    assert.deepStrictEqual(read, {
      modelName: "m",
      modelVersion: "",
      id: "",
      parameters: { c: "x" },
      outputs: [{ name: "Y", shape: [1], datatype: "INT32", content: Uint8Array.of(3, 0, 0, 0) }],
    })
  })
})

const bitsOf = (value: number): number => new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0

/** The FP32 value behind a value, away from zero. */
const next = (value: number): number => new Float32Array(Uint32Array.of(bitsOf(value) + 1).buffer)[0] ?? 0

const significant = (text: string): number =>
  text.replace(/e.*$/, "").replace(/[-.]/g, "").replace(/^0+/, "").replace(/0+$/, "").length

const shortest = (value: number): number => {
  for (let precision = 1; precision < 9; precision++) {
    if (Math.fround(Number(value.toPrecision(precision))) === value) return significant(value.toPrecision(precision))
  }
  return 9
}

it("refuses an extent that cannot be counted exactly, with all its digits", () => {
  const tensor = `{"name":"X","datatype":"FP32","shape":[1,9223372036854775807],"data":[]}`
  const read = readRequest(new TextEncoder().encode(`{"inputs":[${tensor}]}`))
  const { _tag, message } = Result.getOrThrow(Result.flip(read))
  const text = "a tensor has the extent 9223372036854775807 in its shape, at most 9007199254740991 is possible"
  assert.deepStrictEqual([_tag, message], ["InvalidRequest", text])
})

import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as fc from "fast-check"
import {
  binaryOutputs,
  decodeRawRequest,
  decodeRequest,
  decodeResponse,
  type EncodedResponse,
  encodeJsonRequest,
  encodeRequest,
  encodeResponse,
  parseHeaderLength,
} from "./BinaryExtension.ts"
import * as DataType from "../../tensor/DataType.ts"
import type { Dim } from "../../tensor/TensorSpec.ts"
import { encodeElements } from "../../tensor/TypedTensor.ts"
import type { WireResponse, WireTensor } from "../../wire/WireRequest.ts"

const encoder = new TextEncoder()
const model = { name: "m", version: "" }

/** Decodes a request with its header: a document, followed by bytes. */
const decode = (document: string, ...blobs: ReadonlyArray<Uint8Array>) => {
  const header = encoder.encode(document)
  return decodeRequest(concat([header, ...blobs]), header.length, model)
}

const concat = (parts: ReadonlyArray<Uint8Array>): Uint8Array => Uint8Array.from(parts.flatMap((part) => [...part]))

const message = <A>(result: Result.Result<A, { readonly _tag: string; readonly message: string }>): string => {
  assert(Result.isFailure(result), "accepted")
  return `${result.failure._tag}: ${result.failure.message}`
}

const tensor: fc.Arbitrary<WireTensor> = fc
  .constantFrom(...DataType.all)
  .chain((datatype) =>
    fc.record({
      name: fc.string({ unit: "binary", minLength: 1 }),
      datatype: fc.constant(datatype),
      elements: fc.array(
        datatype === "BYTES"
          ? fc.string({ unit: "binary" }).map((text) => encodeElements([encoder.encode(text)]))
          : fc.uint8Array({
              minLength: DataType.byteWidth(datatype) ?? 0,
              maxLength: DataType.byteWidth(datatype) ?? 0,
            }),
      ),
    }),
  )
  .map(({ name, datatype, elements }) => ({ name, datatype, shape: [1, elements.length], bytes: concat(elements) }))

const parameters = fc.dictionary(
  fc.string({ unit: "binary" }).filter((name) => name !== "binary_data_output" && name !== "__proto__"),
  fc.oneof(
    fc.boolean(),
    fc.string({ unit: "binary" }),
    // A request must not have others.
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  ),
  { noNullPrototype: true },
)

const head = { id: fc.string({ unit: "binary" }), parameters }

describe("requests", () => {
  it("decode after encode gives the request back, views on one body", () => {
    const wireRequest = fc.record({ ...head, inputs: fc.array(tensor) })
    fc.assert(
      fc.property(wireRequest, fc.array(fc.string({ unit: "binary" })), (some, names) => {
        const outputs = names.map((name) => ({ name, binary: true }))
        const wire = { ...some, modelName: "m", modelVersion: "", outputs }
        const { headerLength, body } = encodeRequest(wire)
        const decoded = Result.getOrThrow(decodeRequest(body, headerLength, model))
        assert.deepStrictEqual(decoded, { wire, binaryOutputs: true })
        for (const { bytes } of decoded.wire.inputs) assert.strictEqual(bytes.buffer, body.buffer)
      }),
    )
  })

  it("a request without binary data decodes to itself, and requests its outputs as JSON", () => {
    const exact = tensor.filter(({ datatype }) => /^(BYTES|U?INT\d+)$/.test(datatype))
    const wireRequest = fc.record({ ...head, inputs: fc.array(exact) })
    fc.assert(
      fc.property(wireRequest, fc.array(fc.string({ unit: "binary" })), (some, names) => {
        const outputs = names.map((name) => ({ name, binary: false }))
        const wire = { ...some, modelName: "m", modelVersion: "", outputs }
        const decoded = decodeRequest(Result.getOrThrow(encodeJsonRequest(wire)), undefined, model)
        assert.deepStrictEqual(Result.getOrThrow(decoded), { wire, binaryOutputs: false })
      }),
    )
  })

  it("an input without a JSON form needs binary data", () => {
    const input: WireTensor = { name: "A", datatype: "FP16", shape: [1], bytes: new Uint8Array(2) }
    const wire = { modelName: "m", modelVersion: "", id: "", parameters: {}, inputs: [input], outputs: [] }
    assert.match(message(encodeJsonRequest(wire)), /^InvalidRequest: sending FP16 data via JSON is not supported/)
  })

  it("binary and JSON tensors mix, binary ones in the order of the inputs", () => {
    const decoded = decode(
      '{"inputs":[{"name":"A","shape":[2],"datatype":"UINT8","parameters":{"binary_data_size":2}},' +
        '{"name":"B","shape":[1],"datatype":"UINT8","data":[9]},' +
        '{"name":"C","parameters":{"binary_data_size":1},"shape":[1],"datatype":"UINT8"}]}',
      Uint8Array.of(1, 2, 3),
    )
    const bytes = Result.getOrThrow(decoded).wire.inputs.map((input) => [...input.bytes])
    assert.deepStrictEqual(bytes, [[1, 2], [9], [3]])
  })

  it("too few and too many bytes are refused", () => {
    const document = '{"inputs":[{"name":"A","shape":[4],"datatype":"UINT8","parameters":{"binary_data_size":4}}]}'
    assert.strictEqual(
      message(decode(document, Uint8Array.of(1))),
      "InvalidRequest: unexpected size for input 'A', expecting 3 additional bytes for model 'm'",
    )
    assert.strictEqual(
      message(decode(document, Uint8Array.of(1, 2, 3, 4, 5))),
      "InvalidRequest: unexpected additional input data for model 'm'",
    )
    assert.strictEqual(
      message(decodeRequest(encoder.encode(document), undefined, model)),
      "InvalidRequest: unexpected size for input 'A', expecting 4 additional bytes for model 'm'",
    )
  })

  it("the header length lies in the body", () => {
    const body = encoder.encode('{"inputs":[]}')
    for (const length of [-1, 14]) {
      assert.strictEqual(
        message(decodeRequest(body, length, model)),
        `InvalidRequest: inference header size should be in range (0, 13), got: ${length}`,
      )
    }
    assert.include(message(decodeRequest(body, 12, model)), "MalformedRequest: failed to parse the request JSON buffer")
  })

  it("the header is a 32-bit integer", () => {
    assert.deepStrictEqual(parseHeaderLength(undefined), Result.succeed(undefined))
    assert.deepStrictEqual(parseHeaderLength("12"), Result.succeed(12))
    assert.deepStrictEqual(parseHeaderLength("-12"), Result.succeed(-12))
    for (const text of ["", "x", "1.5", "1e3", "0x10", "2147483648", "12 13"]) {
      assert.include(
        message(parseHeaderLength(text)),
        "InvalidRequest: Unable to parse Inference-Header-Content-Length, ",
      )
    }
  })
})

describe("raw requests", () => {
  const raw = (
    length: number,
    dims: ReadonlyArray<Dim>,
    { datatype = "FP32" as DataType.DataType, maxBatchSize = 0 } = {},
  ) => {
    const inputs = [{ name: "X", datatype, dims, optional: false }]
    const body = Uint8Array.from({ length }, (_, index) => index)
    return decodeRawRequest(body, { name: "m", version: "3", signature: { inputs, outputs: [] }, maxBatchSize })
  }

  it("the body is the only input, and its dims say the shape", () => {
    const shape = (...args: Parameters<typeof raw>) => Result.getOrThrow(raw(...args)).wire.inputs[0]?.shape
    assert.deepStrictEqual(shape(24, [2, 3]), [2, 3])
    assert.deepStrictEqual(shape(24, [2, 3], { maxBatchSize: 4 }), [1, 2, 3])
    assert.deepStrictEqual(shape(24, [2, "n"]), [2, 3])
    assert.deepStrictEqual(shape(24, [-1], { datatype: "INT8", maxBatchSize: 4 }), [1, 24])
    assert.deepStrictEqual(shape(0, [2, -1]), [2, 0])
    assert.deepStrictEqual(shape(4, []), [])
    assert.deepStrictEqual(shape(0, [0, -1]), [0, 0])
    // Not a whole number of elements: validation finds that these shapes need other bytes.
    assert.deepStrictEqual(shape(23, [2, -1]), [2, 2])
    assert.deepStrictEqual(shape(8, [2, 3]), [2, 3])
  })

  it("its other parts are empty, and all its outputs binary", () => {
    const { wire, binaryOutputs } = Result.getOrThrow(raw(4, [1]))
    assert.deepStrictEqual(
      { ...wire, inputs: wire.inputs.length, binaryOutputs },
      {
        modelName: "m",
        modelVersion: "3",
        id: "",
        parameters: {},
        inputs: 1,
        outputs: [],
        binaryOutputs: true,
      },
    )
  })

  it("a BYTES input has one element, which is the body", () => {
    for (const dims of [[1], [], [1, 1]]) {
      const [input] = Result.getOrThrow(raw(3, dims, { datatype: "BYTES" })).wire.inputs
      assert.deepStrictEqual([...(input?.bytes ?? [])], [3, 0, 0, 0, 0, 1, 2])
      assert.deepStrictEqual(input?.shape, dims)
    }
  })

  it("a signature that leaves the shape open is refused", () => {
    const prefix = "InvalidRequest: [request id: <id_unknown>] "
    const inputs = ["X", "Y", "Z"].map((name) => ({ name, datatype: "FP32" as const, dims: [1], optional: false }))
    for (const [count, found] of [
      [0, "0 inputs"],
      [3, "3 inputs"],
    ] as const) {
      const signature = { inputs: inputs.slice(0, count), outputs: [] }
      assert.strictEqual(
        message(decodeRawRequest(new Uint8Array(4), { name: "m", version: "1", signature, maxBatchSize: 0 })),
        `${prefix}Raw request must only have 1 input (found 1) to be deduced but got ${found} in 'm' model configuration`,
      )
    }
    assert.strictEqual(
      message(raw(4, ["a", 2, -1])),
      `${prefix}The shape of the raw input 'X' can not be deduced because there are more than one variable-sized dimension`,
    )
    for (const dims of [[2], [-1], [1, "n"], [0]]) {
      assert.strictEqual(
        message(raw(4, dims, { datatype: "BYTES" })),
        `${prefix}For BYTE datatype raw input 'X', the model must have input shape [1]`,
      )
    }
  })
})

describe("responses", () => {
  const body = ({ document, tensors }: EncodedResponse) => concat([document, ...tensors])
  const response = (outputs: ReadonlyArray<WireTensor>): WireResponse => ({
    modelName: "m",
    modelVersion: "3",
    id: "",
    parameters: {},
    outputs,
  })

  it("decode inverts encode for any choice of binary outputs", () => {
    const some = fc.record({ ...head, outputs: fc.array(fc.record({ tensor, binary: fc.boolean() })) })
    fc.assert(
      fc.property(some, ({ outputs, ...rest }) => {
        const wire = { ...response(outputs.map((output) => output.tensor)), ...rest }
        // FP16 and BF16 have no JSON form; NaNs lose their payload in it, and every byte but 0 is true.
        const binary = outputs.map((output) => output.binary || /FP|BF|BOOL/.test(output.tensor.datatype))
        const encoded = Result.getOrThrow(encodeResponse(wire, binary))
        assert.strictEqual(encoded.headerLength !== undefined, binary.includes(true))
        const decoded = Result.getOrThrow(decodeResponse(body(encoded), encoded.headerLength))
        assert.deepStrictEqual(decoded, wire)
      }),
    )
  })

  it("floating point values survive JSON", () => {
    const values = fc.array(fc.float())
    fc.assert(
      fc.property(values, (numbers) => {
        for (const [datatype, data] of [
          ["FP32", Float32Array.from(numbers)],
          ["FP64", Float64Array.from(numbers)],
        ] as const) {
          const wire = response([{ name: "Y", datatype, shape: [numbers.length], bytes: new Uint8Array(data.buffer) }])
          const decoded = decodeResponse(body(Result.getOrThrow(encodeResponse(wire, [false]))), undefined)
          assert.deepStrictEqual(Result.getOrThrow(decoded), wire)
        }
      }),
    )
  })

  it("an output selects its format; the request sets the default", () => {
    const requested = Result.getOrThrow(
      decodeRequest(
        encoder.encode(
          '{"parameters":{"binary_data_output":true},"inputs":[],"outputs":[{"name":"A"},' +
            '{"name":"B","parameters":{"binary_data":false}}]}',
        ),
        undefined,
        model,
      ),
    )
    const outputs = ["A", "B"].map((name) => ({ name, datatype: "UINT8", shape: [1], bytes: Uint8Array.of(1) }))
    assert.deepStrictEqual(binaryOutputs(requested, response(outputs)), [true, false])
    assert.deepStrictEqual(binaryOutputs({ ...requested, binaryOutputs: false }, response(outputs)), [false, false])
  })

  it("binary data that does not add up is refused", () => {
    const outputs = [{ name: "Y", datatype: "UINT8", shape: [2], bytes: Uint8Array.of(1, 2) }]
    const encoded = Result.getOrThrow(encodeResponse(response(outputs), [true]))
    const whole = body(encoded)
    assert.include(message(decodeResponse(whole.subarray(0, -1), encoded.headerLength)), "ends 1 bytes before the end")
    assert.include(message(decodeResponse(concat([whole, whole]), encoded.headerLength)), "more binary data than")
    assert.include(message(decodeResponse(whole, whole.length + 1)), "should have 0 to")
    assert.include(message(decodeResponse(new Uint8Array(), undefined)), "failed to parse the response JSON buffer")
  })
})

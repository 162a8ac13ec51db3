/**
 * The value of one field as JSON, as code sees it: text is a string, a label its name, a `Tensor.json` as its Schema
 * defines, a tensor nested arrays. 64-bit integers are strings of digits, as JSON readers lose precision; NaN and the
 * infinities are strings too. JsonElements.ts handles the tensors of the protocol.
 */
import { identity, Result, Schema } from "effect"
import { type Field, isPlain } from "../model/Field.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import type { DataType } from "../tensor/DataType.ts"
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import { fromNested, type Nested, toNested } from "../tensor/Nested.ts"
import { type Dim, print, type TensorSpec } from "../tensor/TensorSpec.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import { errorMessage } from "../error/ErrorMessage.ts"

export interface JsonField {
  readonly spec: TensorSpec
  /** Fails with a description of the problem. */
  readonly decode: (json: unknown) => Result.Result<TypedTensor, string>
  readonly encode: (tensor: TypedTensor) => Result.Result<unknown, string>
  readonly jsonSchema: JsonSchema
}

/** @throws TypeError if the field has no JSON form */
export const make = (spec: TensorSpec, field: Field): JsonField => (isPlain(field) ? plain(spec) : typed(spec, field))

/** A field of code's own type: JSON ─► what code has ─► tensor. */
const typed = (spec: TensorSpec, field: Field): JsonField => {
  const tensors = SampleCodec.make({ [spec.name]: field }, [spec])
  const type: Schema.Codec<unknown, unknown> = Schema.toType(field as Field & Schema.Codec<unknown, unknown>)
  const json = jsonCodec(spec, type)
  const decode = Schema.decodeUnknownResult(json)
  // A recursive Schema may exceed the stack on deeply nested values.
  const decoded = (given: unknown) =>
    Result.flatMap(Result.try({ try: () => decode(given), catch: (error): unknown => error }), identity)
  const encode = Schema.encodeUnknownResult(json)
  const is64 = spec.datatype === "INT64" || spec.datatype === "UINT64"
  return {
    spec,
    decode: (given) => {
      // As people write it, and exact.
      const value = decoded(is64 && Number.isSafeInteger(given) ? String(given) : given)
      if (Result.isFailure(value)) {
        return Result.fail(`${oneLine(value.failure)}: declared as ${print(spec.datatype, spec.dims)}`)
      }
      const encoded = tensors.encode({ [spec.name]: value.success }, false)
      if (Result.isFailure(encoded)) return Result.fail(encoded.failure.message)
      const [tensor] = encoded.success
      return tensor === undefined ? Result.fail("missing") : Result.succeed(tensor)
    },
    encode: (tensor) => {
      const sample = tensors.decode([tensor])
      if (Result.isFailure(sample)) return Result.fail(sample.failure.message)
      return Result.mapBoth(encode(sample.success[spec.name]), {
        onFailure: oneLine,
        onSuccess: (json) => (spec.datatype === "FP32" && typeof json === "number" ? shortest(json) : json),
      })
    },
    jsonSchema: Schema.toJsonSchemaDocument(type),
  }
}

const jsonCodec = (spec: TensorSpec, type: Schema.Codec<unknown, unknown>) => {
  try {
    return Schema.toCodecJson(type)
  } catch (error) {
    throw new TypeError(`'${spec.name}' cannot be represented as JSON: ${errorMessage(error)}`, {
      cause: error,
    })
  }
}

/** A field that shows its tensor. */
const plain = (spec: TensorSpec): JsonField => {
  const { datatype, dims, name } = spec
  if (datatype === "BF16")
    throw new TypeError(`'${name}' cannot be represented as JSON: ${print(datatype, dims)} has no JSON numbers`)
  return {
    spec,
    decode: (json) => {
      const nested = element(datatype, json)
      if (nested === undefined) return Result.fail(`expected ${described(datatype)} in nested arrays`)
      try {
        const tensor = untyped(datatype, nested)
        const wrong = SampleCodec.mismatch(spec, tensor, 0)
        return wrong === undefined ? Result.succeed(tensor) : Result.fail(wrong)
      } catch (error) {
        return Result.fail(errorMessage(error))
      }
    },
    encode: (tensor) => {
      try {
        return Result.succeed(printable(datatype, toNested(tensor)))
      } catch (error) {
        return Result.fail(`${errorMessage(error)}: the bytes are not UTF-8 text`)
      }
    },
    jsonSchema: { schema: dims.reduceRight<object>(arrayOf, elementSchema(datatype)), definitions: {} },
  }
}

/** Its types count the levels of arrays, which only the running program knows here. */
const untyped = fromNested as (datatype: DataType, nested: unknown) => TypedTensor

/** No tensor has as many axes; what goes deeper would end the stack. */
const maxAxes = 64

/** Converts parsed JSON to tensor elements; undefined if the value is not an element of this datatype. */
const element = (datatype: DataType, json: unknown, axis = 0): Nested<unknown> | undefined => {
  if (Array.isArray(json)) {
    if (axis === maxAxes) return undefined
    const inner = json.map((value: unknown) => element(datatype, value, axis + 1))
    return inner.includes(undefined) ? undefined : inner
  }
  switch (datatype) {
    case "BOOL":
      return typeof json === "boolean" ? json : undefined
    case "BYTES":
      return typeof json === "string" ? json : undefined
    case "INT64":
    case "UINT64":
      if (typeof json === "string" && /^-?[0-9]{1,20}$/.test(json)) return BigInt(json)
      return typeof json === "number" && Number.isSafeInteger(json) ? BigInt(json) : undefined
    default:
      if (datatype.startsWith("FP") && typeof json === "string" && notFinite.has(json)) return Number(json)
      return typeof json === "number" ? json : undefined
  }
}

const notFinite = new Set(["NaN", "Infinity", "-Infinity"])

const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const printable = (datatype: DataType, nested: unknown): unknown => {
  if (Array.isArray(nested)) return nested.map((inner: unknown) => printable(datatype, inner))
  if (nested instanceof Uint8Array) return text.decode(nested)
  if (typeof nested === "bigint") return String(nested)
  if (typeof nested !== "number") return nested
  if (!Number.isFinite(nested)) return String(nested)
  return datatype === "FP32" ? shortest(nested) : nested
}

/** The shortest decimal that reads as the same single: 0.1 and not 0.10000000149011612. */
const shortest = (single: number): number => {
  if (Math.fround(single) !== single) return single
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(single.toPrecision(digits))
    if (Math.fround(short) === single) return short
  }
  return Number(single.toPrecision(9))
}

const described = (datatype: DataType): string => {
  switch (datatype) {
    case "BOOL":
      return "true and false"
    case "BYTES":
      return "texts"
    case "INT64":
    case "UINT64":
      return "integers, as strings of digits or exact numbers,"
    default:
      return "numbers"
  }
}

const elementSchema = (datatype: DataType): object => {
  switch (datatype) {
    case "BOOL":
      return { type: "boolean" }
    case "BYTES":
      return { type: "string" }
    case "INT64":
    case "UINT64":
      return { type: "string", pattern: "^-?\\d+$" }
    default:
      return datatype.startsWith("FP")
        ? { anyOf: [{ type: "number" }, { type: "string", enum: [...notFinite] }] }
        : { type: "integer" }
  }
}

const arrayOf = (items: object, dim: Dim): object =>
  typeof dim === "number" && dim >= 0
    ? { type: "array", items, minItems: dim, maxItems: dim }
    : { type: "array", items, ...(typeof dim === "string" ? { description: `${dim} of them` } : {}) }

const oneLine = (error: unknown): string => errorMessage(error).replaceAll(/\s*\n\s*/g, "; ")

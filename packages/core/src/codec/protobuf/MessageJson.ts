/**
 * Protocol messages as JSON in Triton's format, for JSON.stringify: field names as in the proto file, default values
 * included, enums by name, 64-bit integers as numbers. Protobuf's standard JSON has strings for these integers.
 * JsonDecoder.ts has the JSON of inference.
 */
import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type MessageShape,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf"

export const print = <Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): JsonObject => {
  const json: JsonValue = toJson(schema, message, { useProtoFieldName: true, alwaysEmitImplicit: true })
  if (!isObject(json)) throw new TypeError(`${schema.typeName} is not printed as an object. This is a bug.`)
  return withNumbers(schema, json)
}

const withNumbers = (schema: DescMessage, json: JsonObject): JsonObject => {
  const fields = new Map(schema.fields.map((field) => [field.name, field]))
  return mapValues(json, (value, name) => {
    const field = fields.get(name)
    return field === undefined ? value : fieldWithNumbers(field, value)
  })
}

const fieldWithNumbers = (field: DescField, value: JsonValue): JsonValue => {
  if (field.fieldKind === "list" && Array.isArray(value)) return value.map((element) => single(field, element))
  if (field.fieldKind === "map" && isObject(value)) return mapValues(value, (element) => single(field, element))
  return single(field, value)
}

/** One value of the field: itself, an element of its list, or a value of its map. */
const single = ({ message, scalar }: DescField, value: JsonValue): JsonValue => {
  if (message !== undefined) return isObject(value) ? withNumbers(message, value) : value
  return scalar !== undefined && longs.has(scalar) ? long(String(value)) : value
}

/**
 * A 64-bit integer as JSON. Beyond the safe range of a double it is raw JSON, so that JSON.stringify keeps all digits.
 */
const long = (digits: string): JsonValue => {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number : rawJSON(digits)
}

/** Which TypeScript has no type of yet. */
const { rawJSON } = JSON as typeof JSON & { readonly rawJSON: (text: string) => { readonly rawJSON: string } }

const longs: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
])

const mapValues = (object: JsonObject, f: (value: JsonValue, key: string) => JsonValue): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, f(value, key)]))

const isObject = (json: JsonValue): json is JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json)

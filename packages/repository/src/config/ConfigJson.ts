/** Parses a configuration in JSON, as a client sends it with a load request. */
import { type DescField, type DescMessage, fromJson, fromJsonString, type JsonValue, toJson } from "@bufbuild/protobuf"
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"

/**
 * Like Google's parser, takes a single value for a list of one: `"instance_group": {"count": 2}`.
 * @throws Error with the reason
 */
export const parse = (text: string): ModelConfig => {
  // Rejects duplicate keys, unlike JSON.parse.
  const value: Value = fromJsonString(ValueSchema, text)
  return fromJson(ModelConfigSchema, withLists(ModelConfigSchema, toJson(ValueSchema, value)))
}

const withLists = (message: DescMessage, json: JsonValue): JsonValue =>
  mapped(json, (name, value) => {
    const field = message.fields.find((other) => other.name === name || other.jsonName === name)
    return field === undefined ? value : fieldValue(field, value)
  })

const fieldValue = (field: DescField, value: JsonValue): JsonValue => {
  const { message } = field
  const item = (one: JsonValue) => (message === undefined ? one : withLists(message, one))
  if (field.fieldKind === "list") {
    if (value === null) return value
    return Array.isArray(value) ? value.map(item) : [item(value)]
  }
  return field.fieldKind === "map" ? mapped(value, (_, one) => item(one)) : item(value)
}

/** Replaces the values of an object's members; returns any other value as it is. */
const mapped = (json: JsonValue, replace: (name: string, value: JsonValue) => JsonValue): JsonValue =>
  typeof json !== "object" || json === null || Array.isArray(json)
    ? json
    : Object.fromEntries(Object.entries(json).map(([name, value]) => [name, replace(name, value)]))

/**
 * JSON Schemas of protocol messages in the JSON of MessageJson.ts: names as in the proto file, enums by name, 64-bit
 * integers as numbers. A member is required unless it can be unset.
 */
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf"
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt"
import type { Components } from "./Components.ts"
import type { SchemaObject } from "./SchemaObject.ts"

/** Adds the message and those inside it, and returns the reference to it. */
export const add = (message: DescMessage, components: Components): SchemaObject => {
  const name = nameOf(message)
  const reference = components.reference(name)
  if (components.has(name)) return reference
  // First, for a message that contains itself.
  components.add(name, {})
  const { fields } = message
  return components.add(name, {
    type: "object",
    properties: Object.fromEntries(fields.map((field) => [field.name, schemaOf(field, components)])),
    required: fields.filter(isAlwaysPresent).map((field) => field.name),
  })
}

/** Without the package, and with the messages around it: `ModelRateLimiterResource`. */
const nameOf = ({ name, parent }: DescMessage): string => (parent === undefined ? name : nameOf(parent) + name)

const isAlwaysPresent = (field: DescField): boolean =>
  field.fieldKind === "list" ||
  field.fieldKind === "map" ||
  (field.fieldKind !== "message" && field.presence === FeatureSet_FieldPresence.IMPLICIT)

const schemaOf = (field: DescField, components: Components): SchemaObject => {
  switch (field.fieldKind) {
    case "list":
      return { type: "array", items: single(field, components) }
    case "map":
      return { type: "object", additionalProperties: single(field, components) }
    default:
      return single(field, components)
  }
}

/** One value of the field: itself, an element of its list, or a value of its map. */
const single = ({ message, enum: names, scalar }: DescField, components: Components): SchemaObject => {
  if (message !== undefined) return add(message, components)
  if (names !== undefined) return { type: "string", enum: names.values.map(({ name }) => name) }
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" }
    case ScalarType.STRING:
      return { type: "string" }
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" }
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      return { anyOf: [{ type: "number" }, { type: "string", enum: ["NaN", "Infinity", "-Infinity"] }] }
    default:
      return { type: "integer" }
  }
}

/** Values that a schema allows, for the first request of an operation. */
import type { JsonSchema } from "../api/Protocol.ts"
import { type Document, isObject, resolve } from "./Document.ts"

/** Levels of objects and arrays in an example; deeper ones are empty. */
const maxDepth = 6

/** A value that a schema allows, for a first request. */
export const example = (document: Document, given: JsonSchema | undefined, depth = 0): unknown => {
  const schema = resolve(document, given)
  if (schema === undefined || depth > maxDepth) return null
  const { default: preset, examples, enum: choices, const: constant, anyOf, oneOf, allOf } = schema
  if (constant !== undefined) return constant
  if (Array.isArray(examples) && examples.length > 0) return examples[0]
  if (preset !== undefined) return preset
  if (Array.isArray(choices)) return choices[0]
  for (const union of [anyOf, oneOf, allOf])
    if (Array.isArray(union)) return example(document, asSchema(union[0]), depth + 1)
  return exampleOfType(document, schema, depth)
}

const exampleOfType = (document: Document, schema: JsonSchema, depth: number): unknown => {
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"]
  switch (type) {
    case "object": {
      const required = Array.isArray(schema["required"]) ? schema["required"] : []
      const members = Object.entries(asSchema(schema["properties"]) ?? {})
      return Object.fromEntries(
        members
          .filter(([name]) => required.includes(name))
          .map(([name, member]) => [name, example(document, asSchema(member), depth + 1)]),
      )
    }
    case "array": {
      const prefix = schema["prefixItems"]
      if (Array.isArray(prefix)) return prefix.map((item) => example(document, asSchema(item), depth + 1))
      const count = Math.min(1024, Math.max(1, Number(schema["minItems"] ?? 1)))
      return Array.from({ length: count }, () => example(document, asSchema(schema["items"]), depth + 1))
    }
    case "string":
      return "text"
    case "integer":
    case "number":
      return Number(schema["minimum"] ?? 0)
    case "boolean":
      return false
    default:
      return null
  }
}

/** A member of a schema that may be a schema itself, which a boolean is not for an example. */
const asSchema = (value: unknown): JsonSchema | undefined => (isObject(value) ? value : undefined)

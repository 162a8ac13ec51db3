/** The OpenAPI document of the server, as far as the page reads it. */
import type { JsonSchema } from "../api/Protocol.ts"

export interface Document {
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: { readonly schemas?: Readonly<Record<string, JsonSchema>> }
}

export interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: Body
  readonly responses?: Readonly<Record<string, Body>>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: JsonSchema
}

export interface Body {
  readonly description?: string
  readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema; readonly example?: unknown }>>
}

/** An operation with its place in the document. */
export interface Entry {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

const methods = new Set(["get", "post", "put", "delete", "patch", "head"])

/** The operations by tag, in the order of the document. */
export const byTag = ({ paths }: Document): ReadonlyMap<string, ReadonlyArray<Entry>> => {
  const groups = new Map<string, Array<Entry>>()
  for (const [path, item] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(item)) {
      if (!methods.has(method)) continue
      const [tag = "Other"] = operation.tags ?? []
      const group = groups.get(tag) ?? []
      group.push({ method: method.toUpperCase(), path, operation })
      groups.set(tag, group)
    }
  }
  return groups
}

/** The schema behind a reference. */
export const resolve = (document: Document, schema: JsonSchema | undefined): JsonSchema | undefined => {
  const reference = schema?.["$ref"]
  if (typeof reference !== "string") return schema
  const name = /^#\/components\/schemas\/(.+)$/.exec(reference)?.[1]
  return name === undefined
    ? undefined
    : document.components?.schemas?.[name.replaceAll("~1", "/").replaceAll("~0", "~")]
}

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
  for (const union of [anyOf, oneOf, allOf]) if (Array.isArray(union)) return example(document, union[0], depth + 1)
  return exampleOfType(document, schema, depth)
}

const exampleOfType = (document: Document, schema: JsonSchema, depth: number): unknown => {
  const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"]
  switch (type) {
    case "object": {
      const required = Array.isArray(schema["required"]) ? schema["required"] : []
      const members = Object.entries((schema["properties"] ?? {}) as Record<string, JsonSchema>)
      return Object.fromEntries(
        members
          .filter(([name]) => required.includes(name))
          .map(([name, member]) => [name, example(document, member, depth + 1)]),
      )
    }
    case "array": {
      const prefix = schema["prefixItems"]
      if (Array.isArray(prefix)) return prefix.map((item) => example(document, item, depth + 1))
      const count = Math.min(1024, Math.max(1, Number(schema["minItems"] ?? 1)))
      return Array.from({ length: count }, () =>
        example(document, schema["items"] as JsonSchema | undefined, depth + 1),
      )
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

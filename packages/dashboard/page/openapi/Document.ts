/** The OpenAPI document of the server, as far as the page reads it. */
import type { JsonSchema } from "../api/Protocol.ts"

export interface Document {
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: {
    readonly schemas?: Readonly<Record<string, JsonSchema>>
    readonly parameters?: Readonly<Record<string, Parameter>>
    readonly responses?: Readonly<Record<string, Body>>
  }
}

/** A place in `components` that has the object. */
export interface Reference {
  readonly $ref: string
}

export interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly description?: string
  readonly tags?: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<Parameter | Reference>
  readonly requestBody?: Body
  readonly responses?: Readonly<Record<string, Body | Reference>>
  /** The model that the operation calls, if it is for one model. */
  readonly "x-nereid-model"?: { readonly name: string; readonly version: string }
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

/** The parameters of an operation. */
export const parametersOf = ({ components }: Document, { parameters = [] }: Operation): ReadonlyArray<Parameter> =>
  parameters.flatMap((parameter) => {
    if (!("$ref" in parameter)) return [parameter]
    return components?.parameters?.[nameIn(parameter, "parameters")] ?? []
  })

/** The responses of an operation, by status. */
export const responsesOf = (
  { components }: Document,
  { responses = {} }: Operation,
): ReadonlyArray<readonly [status: string, response: Body]> =>
  Object.entries(responses).map(([status, response]) => [
    status,
    "$ref" in response ? (components?.responses?.[nameIn(response, "responses")] ?? {}) : response,
  ])

/** The schema behind a reference. */
export const resolve = (document: Document, schema: JsonSchema | undefined): JsonSchema | undefined => {
  const name = schema && nameOf(schema)
  return name === undefined ? schema : document.components?.schemas?.[name]
}

/** The name of the schema that a schema refers to. */
export const nameOf = ({ $ref }: JsonSchema): string | undefined =>
  typeof $ref === "string" ? nameIn({ $ref }, "schemas") : undefined

/** The names of the schemas to which a schema refers anywhere. */
export const namesIn = (node: unknown): ReadonlyArray<string> => {
  if (Array.isArray(node)) return [...new Set(node.flatMap(namesIn))]
  if (!isObject(node)) return []
  const own = nameOf(node)
  return [...new Set([...(own === undefined ? [] : [own]), ...Object.values(node).flatMap(namesIn)])]
}

/** The name in a JSON pointer; empty for one to another place. */
const nameIn = ({ $ref }: Reference, kind: string): string => {
  const start = `#/components/${kind}/`
  return $ref.startsWith(start) ? $ref.slice(start.length).replaceAll("~1", "/").replaceAll("~0", "~") : ""
}

export const isObject = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

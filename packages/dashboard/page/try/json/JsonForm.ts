/**
 * The form of a JSON Schema (draft 2020-12), one level of it: inner schemas are read when they are shown, so that a
 * schema may contain itself. A schema that this does not understand is any JSON.
 */
import type { JsonSchema } from "../../api/Protocol.ts"
import { isArray, isObject, type Json } from "./Json.ts"

export interface Member {
  readonly name: string
  readonly schema: JsonSchema
  readonly required: boolean
}

export type JsonForm = { readonly title?: string; readonly description?: string } & (
  | { readonly kind: "text"; readonly minLength?: number; readonly maxLength?: number; readonly pattern?: string }
  /** Integers of any size; in JSON fields they are strings of digits. */
  | { readonly kind: "digits" }
  | {
      readonly kind: "number"
      readonly isInteger: boolean
      readonly minimum?: number
      readonly maximum?: number
      /** Whether the bounds themselves are outside. */
      readonly isAboveMinimum: boolean
      readonly isBelowMaximum: boolean
    }
  | { readonly kind: "boolean" }
  | { readonly kind: "choice"; readonly values: ReadonlyArray<Json> }
  | { readonly kind: "object"; readonly members: ReadonlyArray<Member>; readonly rest?: JsonSchema }
  | {
      readonly kind: "array"
      /** Schemas of the first elements. */
      readonly first: ReadonlyArray<JsonSchema>
      /** Schema of all others; undefined if there are none. */
      readonly items: JsonSchema | undefined
      readonly minItems: number
      readonly maxItems: number
    }
  | { readonly kind: "union"; readonly options: ReadonlyArray<{ readonly name: string; readonly schema: JsonSchema }> }
  | { readonly kind: "any" }
)

/** References that are followed in a row. */
const maxReferences = 32

/** Elements that a form can have. */
export const maxItems = 1_000

export const formOf = (schema: JsonSchema, root: JsonSchema): JsonForm => {
  const node = resolved(schema, root)
  const texts = {
    ...(typeof node["title"] === "string" && { title: node["title"] }),
    ...(typeof node["description"] === "string" && { description: node["description"] }),
  }
  return { ...texts, ...bare(node, root) }
}

const bare = (node: JsonSchema, root: JsonSchema): JsonForm => {
  const { type } = node
  if ("const" in node && isJson(node["const"])) return { kind: "choice", values: [node["const"]] }
  if (Array.isArray(node["enum"]) && node["enum"].length > 0)
    return { kind: "choice", values: node["enum"].filter(isJson) }
  const options = node["anyOf"] ?? node["oneOf"]
  if (Array.isArray(options)) return union(options.filter(isSchema), root)
  if (Array.isArray(type)) {
    return union(
      type.map((one: unknown) => ({ ...node, type: one })),
      root,
    )
  }
  switch (type) {
    case "null":
      return { kind: "choice", values: [null] }
    case "boolean":
      return { kind: "boolean" }
    case "string":
      return node["pattern"] === "^-?\\d+$" ? { kind: "digits" } : text(node)
    case "number":
    case "integer":
      return number(node, type === "integer")
    case "array":
      return array(node)
    case "object":
      return object(node)
    default:
      return isSchema(node["properties"]) ? object(node) : { kind: "any" }
  }
}

/** Follows references, and merges what `allOf` adds. */
const resolved = (schema: JsonSchema, root: JsonSchema): JsonSchema => {
  let node = schema
  for (let followed = 0; typeof node["$ref"] === "string"; followed++) {
    if (followed === maxReferences) return {}
    const { $ref, ...beside } = node
    const found = target(String($ref), root)
    if (found === undefined) return {}
    node = { ...found, ...beside, ...(found["$ref"] !== undefined && { $ref: found["$ref"] }) }
  }
  const parts = node["allOf"]
  if (!Array.isArray(parts)) return node
  return parts.filter(isSchema).reduce<JsonSchema>((all, part) => merged(all, part), { ...node, allOf: undefined })
}

const merged = (one: JsonSchema, other: JsonSchema): JsonSchema => ({
  ...one,
  ...other,
  ...(isSchema(one["properties"]) &&
    isSchema(other["properties"]) && { properties: { ...one["properties"], ...other["properties"] } }),
  ...(Array.isArray(one["required"]) &&
    Array.isArray(other["required"]) && { required: [...one["required"], ...other["required"]] }),
})

const target = (reference: string, root: JsonSchema): JsonSchema | undefined => {
  if (!reference.startsWith("#")) return undefined
  let node: unknown = root
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")
    node = isSchema(node) && Object.hasOwn(node, name) ? node[name] : undefined
  }
  return isSchema(node) ? node : undefined
}

const union = (schemas: ReadonlyArray<JsonSchema>, root: JsonSchema): JsonForm => {
  const [only] = schemas
  if (only === undefined) return { kind: "any" }
  if (schemas.length === 1) return formOf(only, root)
  const forms = schemas.map((schema) => formOf(schema, root))
  const choices = forms.flatMap((form) => (form.kind === "choice" ? form.values : []))
  if (forms.every(({ kind }) => kind === "choice")) return { kind: "choice", values: choices }
  const [number, ...others] = forms
  // Schemas of Effect have the numbers that JSON lacks as strings; the form leaves them out.
  const isNumber = number?.kind === "number" && others.every(({ kind }) => kind === "choice")
  if (isNumber && choices.every((value) => notFinite.has(value))) return number
  return { kind: "union", options: schemas.map((schema, index) => ({ name: nameOf(forms[index], root), schema })) }
}

const notFinite = new Set<unknown>(["NaN", "Infinity", "-Infinity"])

const kinds = { text: "text", digits: "integer", number: "number", boolean: "yes or no", any: "JSON", union: "choice" }

/** A short name of an option of a union. */
const nameOf = (form: JsonForm | undefined, root: JsonSchema): string => {
  if (form === undefined) return "JSON"
  if (form.title !== undefined) return form.title
  switch (form.kind) {
    case "choice":
      return form.values.length <= 3 ? form.values.map(labelOf).join(", ") : "one of a list"
    case "array":
      return "list"
    case "object": {
      // Options of a union often have a member that tells which it is.
      const constants = form.members.flatMap(({ schema }) => {
        const inner = resolved(schema, root)
        return "const" in inner ? [inner["const"]] : Array.isArray(inner["enum"]) ? inner["enum"].slice(0, 2) : []
      })
      if (constants.length === 1) return String(constants[0])
      const names = form.members.slice(0, 3).map(({ name }) => name)
      return names.length === 0 ? "object" : `{ ${names.join(", ")} }`
    }
    default:
      return kinds[form.kind]
  }
}

/** A value of a choice. */
export const labelOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value))

const text = (node: JsonSchema): JsonForm => ({
  kind: "text",
  ...(typeof node["minLength"] === "number" && { minLength: node["minLength"] }),
  ...(typeof node["maxLength"] === "number" && { maxLength: node["maxLength"] }),
  ...(typeof node["pattern"] === "string" && { pattern: node["pattern"] }),
})

const number = (node: JsonSchema, isInteger: boolean): JsonForm => {
  const above = finite(node["exclusiveMinimum"])
  const below = finite(node["exclusiveMaximum"])
  const minimum = above ?? finite(node["minimum"])
  const maximum = below ?? finite(node["maximum"])
  return {
    kind: "number",
    isInteger,
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
    isAboveMinimum: above !== undefined,
    isBelowMaximum: below !== undefined,
  }
}

const finite = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined)

const array = (node: JsonSchema): JsonForm => {
  const first = Array.isArray(node["prefixItems"])
    ? node["prefixItems"].map((item) => (isSchema(item) ? item : {}))
    : []
  const { items } = node
  const rest = items === false || (items === undefined && first.length > 0) ? undefined : isSchema(items) ? items : {}
  const most = rest === undefined ? first.length : (finite(node["maxItems"]) ?? maxItems)
  return {
    kind: "array",
    first,
    items: rest,
    minItems: Math.min(finite(node["minItems"]) ?? 0, maxItems),
    maxItems: Math.min(most, maxItems),
  }
}

const object = (node: JsonSchema): JsonForm => {
  const properties = isSchema(node["properties"]) ? node["properties"] : {}
  const required = new Set<unknown>(Array.isArray(node["required"]) ? node["required"] : [])
  const members = Object.entries(properties).map(([name, schema]) => ({
    name,
    schema: isSchema(schema) ? schema : {},
    required: required.has(name),
  }))
  const rest = node["additionalProperties"]
  const isOpen = isSchema(rest) || (rest === undefined && members.length === 0)
  return { kind: "object", members, ...(isOpen && { rest: isSchema(rest) ? rest : {} }) }
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isJson = (value: unknown): value is Json => value !== undefined

/** Schemas inside schemas that the first value of a form has. */
const maxDepth = 12

/** The value that a form starts with: what a schema requires, and its default or first example. */
export const initial = (schema: JsonSchema, root: JsonSchema, depth = 0): Json => {
  const node = resolved(schema, root)
  if (isJson(node["default"])) return node["default"]
  if (Array.isArray(node["examples"]) && isJson(node["examples"][0])) return node["examples"][0]
  const form = formOf(schema, root)
  if (depth > maxDepth) return null
  switch (form.kind) {
    case "text":
      return ""
    case "digits":
      return "0"
    case "boolean":
      return false
    case "choice":
      return form.values[0] ?? null
    case "number":
      return firstNumber(form)
    case "union":
      return initial(form.options[0]?.schema ?? {}, root, depth + 1)
    case "object": {
      const required = form.members.filter((member) => member.required)
      return Object.fromEntries(required.map((member) => [member.name, initial(member.schema, root, depth + 1)]))
    }
    case "array":
      return Array.from({ length: Math.max(form.minItems, 0) }, (_, index) =>
        initial(form.first[index] ?? form.items ?? {}, root, depth + 1),
      )
    case "any":
      return null
  }
}

const firstNumber = ({
  minimum = -Infinity,
  maximum = Infinity,
  isAboveMinimum,
  isBelowMaximum,
}: Extract<JsonForm, { kind: "number" }>): number => {
  const isInside = (value: number) =>
    (isAboveMinimum ? value > minimum : value >= minimum) && (isBelowMaximum ? value < maximum : value <= maximum)
  const candidates = [0, 1, minimum, minimum + 1, maximum - 1, (minimum + maximum) / 2]
  return candidates.find((value) => Number.isFinite(value) && isInside(value)) ?? 0
}

/** The option of a union that a value has; the first if none fits. */
export const optionOf = (
  value: Json,
  options: ReadonlyArray<{ readonly schema: JsonSchema }>,
  root: JsonSchema,
): number =>
  Math.max(
    0,
    options.findIndex(({ schema }) => accepts(value, schema, root, 0)),
  )

/** Whether a value has the kind of a schema, with its required members and choices; bounds are not compared. */
const accepts = (value: Json, schema: JsonSchema, root: JsonSchema, depth: number): boolean => {
  if (depth > maxDepth) return true
  const form = formOf(schema, root)
  switch (form.kind) {
    case "text":
    case "digits":
      return typeof value === "string"
    case "number":
      return typeof value === "number"
    case "boolean":
      return typeof value === "boolean"
    case "choice":
      return form.values.includes(value)
    case "array":
      return (
        isArray(value) && value.every((item, at) => accepts(item, form.first[at] ?? form.items ?? {}, root, depth + 1))
      )
    case "object":
      return (
        isObject(value) &&
        form.members.every(({ name, schema: inner, required }) => {
          const member = value[name]
          return member === undefined ? !required : accepts(member, inner, root, depth + 1)
        })
      )
    case "union":
      return form.options.some((option) => accepts(value, option.schema, root, depth + 1))
    case "any":
      return true
  }
}

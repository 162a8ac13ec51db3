/**
 * The values that a JSON Schema describes, as far as a contract file can declare them. Constraints other than bounds of
 * numbers are dropped: the server checks them. Schemas may come from any server, so their depth and size are limited,
 * and a part that is unknown or too large accepts every value.
 */
import type { JsonSchema } from "../tensor/JsonSchema.ts"

export type JsonType =
  | { readonly kind: "unknown" | "null" | "boolean" | "string" }
  /** Integers of any size, as strings of digits. */
  | { readonly kind: "bigint" }
  /** `number` includes NaN and the infinities, as strings. */
  | { readonly kind: "number" | "finite" | "integer"; readonly bounds: ReadonlyArray<Bound> }
  | { readonly kind: "literals"; readonly values: ReadonlyArray<Literal> }
  | { readonly kind: "array"; readonly items: JsonType }
  | {
      readonly kind: "tuple"
      readonly elements: ReadonlyArray<{ readonly type: JsonType; readonly optional: boolean }>
      readonly rest: JsonType | undefined
    }
  | { readonly kind: "object"; readonly members: ReadonlyArray<JsonMember>; readonly rest: JsonType | undefined }
  | { readonly kind: "union"; readonly members: ReadonlyArray<JsonType> }
  /** One of the definitions. */
  | { readonly kind: "reference"; readonly name: string }

export type Literal = string | number | boolean

export interface JsonMember {
  readonly name: string
  readonly type: JsonType
  readonly optional: boolean
}

/** A bound of a number, by its keyword in JSON Schema. */
export interface Bound {
  readonly keyword: "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum"
  readonly limit: number
}

/** A type with the definitions that it refers to. */
export interface JsonDocument {
  readonly type: JsonType
  readonly definitions: ReadonlyMap<string, JsonType>
}

/** Schemas inside schemas. */
const maxDepth = 64

/** Schemas of one document. */
const maxSchemas = 10_000

const unknown: JsonType = { kind: "unknown" }

export const fromJsonSchema = ({ schema, definitions }: JsonSchema): JsonDocument => {
  const reader = new Reader(definitions)
  const type = reader.type(schema, 0)
  for (const name of reader.definitions.keys()) {
    if (isEndless(name, reader.definitions)) reader.definitions.set(name, unknown)
  }
  return { type, definitions: reader.definitions }
}

/** The part of a type that a parameter can have; any parameter if there is none. */
export const scalar = ({ type, definitions }: JsonDocument): JsonDocument => {
  const found = type.kind === "reference" ? (definitions.get(type.name) ?? unknown) : type
  const members = (found.kind === "union" ? found.members : [found]).filter(({ kind }) => scalars.has(kind))
  const [only] = members
  const types = only === undefined ? anyScalar : members
  return {
    type: only !== undefined && members.length === 1 ? only : { kind: "union", members: types },
    definitions: new Map(),
  }
}

const scalars = new Set<JsonType["kind"]>(["boolean", "string", "bigint", "number", "finite", "integer", "literals"])

const anyScalar: ReadonlyArray<JsonType> = [{ kind: "string" }, { kind: "finite", bounds: [] }, { kind: "boolean" }]

/** Whether a definition is defined by itself, and not only by values that contain it. */
const isEndless = (name: string, definitions: JsonDocument["definitions"]): boolean => {
  const seen = new Set<string>()
  const pending = [definitions.get(name)]
  for (let type = pending.pop(); type !== undefined; type = pending.pop()) {
    if (type.kind === "union") pending.push(...type.members)
    if (type.kind !== "reference" || seen.has(type.name)) continue
    if (type.name === name) return true
    seen.add(type.name)
    pending.push(definitions.get(type.name))
  }
  return false
}

const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] as const

/** The strings of numbers that JSON does not have. */
const notFinite = new Set<unknown>(["NaN", "Infinity", "-Infinity"])

/** The pattern of `Schema.BigInt`. */
const digits = "^-?\\d+$"

interface Node {
  readonly [keyword: string]: unknown
}

class Reader {
  /** In the order in which they were found. */
  readonly definitions = new Map<string, JsonType>()
  readonly #given: JsonSchema["definitions"]
  #schemas = 0

  constructor(given: JsonSchema["definitions"]) {
    this.#given = given
  }

  type(given: unknown, depth: number): JsonType {
    this.#schemas += 1
    if (depth > maxDepth || this.#schemas > maxSchemas || !isNode(given)) return unknown
    const { $ref, type } = given
    if (typeof $ref === "string") return this.#reference($ref, depth)
    const choices = given["anyOf"] ?? given["oneOf"]
    if (Array.isArray(choices)) return this.#union(choices, depth)
    if ("const" in given) return literals([given["const"]])
    if (Array.isArray(given["enum"])) return literals(given["enum"])
    if (Array.isArray(type))
      return this.#union(
        type.map((one: unknown) => ({ ...given, type: one })),
        depth,
      )
    switch (type) {
      case "null":
      case "boolean":
        return { kind: type }
      case "string":
        return { kind: given["pattern"] === digits ? "bigint" : "string" }
      case "number":
        return { kind: "finite", bounds: boundsOf(given) }
      case "integer":
        return {
          kind: "integer",
          bounds: boundsOf(given).filter(
            ({ limit }) => Number.isSafeInteger(limit) && Math.abs(limit) < Number.MAX_SAFE_INTEGER,
          ),
        }
      case "array":
        return this.#array(given, depth)
      case "object":
        return this.#object(given, depth)
      default:
        return isEmptyObject(given) ? { kind: "object", members: [], rest: undefined } : unknown
    }
  }

  /** A definition is read once, so a schema that contains itself ends. */
  #reference(reference: string, depth: number): JsonType {
    const name = unescaped(reference.replace(/^#\/\$defs\//, ""))
    const definition = Object.hasOwn(this.#given, name) ? this.#given[name] : undefined
    if (!reference.startsWith("#/$defs/") || definition === undefined) return unknown
    if (!this.definitions.has(name)) {
      this.definitions.set(name, unknown)
      this.definitions.set(name, this.type(definition, depth + 1))
    }
    return { kind: "reference", name }
  }

  #union(choices: ReadonlyArray<unknown>, depth: number): JsonType {
    const members = choices.map((choice) => this.type(choice, depth + 1))
    if (members.length === 0 || members.some(({ kind }) => kind === "unknown")) return unknown
    const [number, text] = members
    const isNumber =
      members.length === 2 &&
      number?.kind === "finite" &&
      text?.kind === "literals" &&
      text.values.every((value) => notFinite.has(value))
    if (isNumber) return { kind: "number", bounds: number.bounds }
    const values = members.flatMap((member) => (member.kind === "literals" ? member.values : []))
    const others = members.filter(({ kind }) => kind !== "literals")
    const all: ReadonlyArray<JsonType> =
      values.length > 0 ? [{ kind: "literals", values: distinct(values) }, ...others] : others
    return all.length === 1 && all[0] !== undefined ? all[0] : { kind: "union", members: all }
  }

  #array({ prefixItems, items, minItems, maxItems }: Node, depth: number): JsonType {
    const rest = items === false || items === undefined ? undefined : this.type(items, depth + 1)
    if (!Array.isArray(prefixItems)) return { kind: "array", items: rest ?? unknown }
    const required = typeof minItems === "number" ? minItems : 0
    const elements = prefixItems.map((item: unknown, index) => ({
      type: this.type(item, depth + 1),
      optional: index >= required,
    }))
    const isOpen = rest === undefined && items !== false && maxItems !== elements.length
    return { kind: "tuple", elements, rest: isOpen ? unknown : rest }
  }

  #object({ properties, required, additionalProperties, allOf }: Node, depth: number): JsonType {
    const names = new Set<unknown>(Array.isArray(required) ? required : [])
    const members = Object.entries(isNode(properties) ? properties : {}).map(([name, property]) => ({
      name,
      type: this.type(property, depth + 1),
      optional: !names.has(name),
    }))
    const open = [
      additionalProperties,
      ...(Array.isArray(allOf) ? allOf : []).map((one: unknown) =>
        isNode(one) ? one["additionalProperties"] : undefined,
      ),
    ].find(isNode)
    return { kind: "object", members, rest: open === undefined ? undefined : this.type(open, depth + 1) }
  }
}

const isNode = (value: unknown): value is Node => typeof value === "object" && value !== null && !Array.isArray(value)

/** `Schema.Struct({})`. */
const isEmptyObject = ({ not }: Node): boolean => isNode(not) && not["type"] === "null"

const boundsOf = (node: Node): ReadonlyArray<Bound> =>
  bounds.flatMap((keyword) => {
    const limit = node[keyword]
    return typeof limit === "number" ? [{ keyword, limit }] : []
  })

const literals = (given: ReadonlyArray<unknown>): JsonType => {
  const values = given.filter(
    (value) => typeof value === "string" || typeof value === "number" || typeof value === "boolean",
  )
  const hasNull = given.includes(null)
  if (values.length + Number(hasNull) < new Set(given).size || given.length === 0) return unknown
  const type: JsonType = { kind: "literals", values: distinct(values) }
  if (!hasNull) return type
  return values.length === 0 ? { kind: "null" } : { kind: "union", members: [type, { kind: "null" }] }
}

const distinct = (values: ReadonlyArray<Literal>): ReadonlyArray<Literal> => [...new Set(values)]

/** The name in a JSON pointer. */
const unescaped = (pointer: string): string => pointer.replaceAll("~1", "/").replaceAll("~0", "~")

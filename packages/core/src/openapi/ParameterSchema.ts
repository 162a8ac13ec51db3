/**
 * JSON Schemas of declared parameters as JSON has them: integers of 64 bits are numbers, and no strings stand for NaN
 * and the infinities.
 */
import type { JsonSchema } from "../tensor/JsonSchema.ts"
import type { Components } from "./Components.ts"
import type { SchemaObject } from "./SchemaObject.ts"

/** Any parameter. */
export const scalar: SchemaObject = { type: ["string", "number", "boolean"] }

export const make = (schema: Pick<JsonSchema, "schema" | "definitions">, components: Components): SchemaObject =>
  onWire(components.include(schema))

const onWire = (schema: SchemaObject): SchemaObject => {
  const { type, pattern, anyOf, ...others } = schema
  if (type === "string" && pattern === bigintPattern) return { type: "integer", ...others }
  if (!Array.isArray(anyOf)) return schema
  const choices: ReadonlyArray<SchemaObject> = anyOf
  const kept = choices.filter((choice) => !isNotFinite(choice)).map(onWire)
  const [only] = kept
  return kept.length === 1 && only !== undefined ? { ...others, ...only } : { ...others, anyOf: kept }
}

/** The pattern of `Schema.BigInt`. */
const bigintPattern = "^-?\\d+$"

const notFinite = new Set<unknown>(["NaN", "Infinity", "-Infinity"])

const isNotFinite = ({ enum: values }: SchemaObject): boolean =>
  Array.isArray(values) && values.every((value) => notFinite.has(value))

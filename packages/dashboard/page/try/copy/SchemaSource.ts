/** A JSON Schema as code of Effect's Schema, for the values as they are encoded. */
import type { JsonSchema } from "../../api/Protocol.ts"
import { isArray, isObject, type Json } from "../json/Json.ts"
import { formOf } from "../json/JsonForm.ts"

/** Deeper, and what is not understood, is any JSON. */
const maxDepth = 6

export const source = (schema: JsonSchema, root: JsonSchema, depth = 0): string => {
  if (depth > maxDepth) return any
  const form = formOf(schema, root)
  const inner = (other: JsonSchema) => source(other, root, depth + 1)
  switch (form.kind) {
    case "text":
    case "digits":
      return "Schema.String"
    case "number":
      return form.isInteger ? "Schema.Int" : "Schema.Number"
    case "boolean":
      return "Schema.Boolean"
    case "choice":
      return choice(form.values)
    case "array":
      return form.first.length === 0 && form.items !== undefined ? `Schema.Array(${inner(form.items)})` : any
    case "union":
      return `Schema.Union([${form.options.map((option) => inner(option.schema)).join(", ")}])`
    case "object": {
      if (form.rest !== undefined)
        return form.members.length === 0 ? `Schema.Record(Schema.String, ${inner(form.rest)})` : any
      const members = form.members.map(({ name, schema: member, required }) => {
        const type = inner(member)
        return `${keyOf(name)}: ${required ? type : `Schema.optionalKey(${type})`}`
      })
      return `Schema.Struct({ ${members.join(", ")} })`
    }
    case "any":
      return any
  }
}

const any = "Schema.Json"

const choice = (values: ReadonlyArray<Json>): string => {
  const literals = values.filter((value) => value !== null)
  if (literals.some((value) => isArray(value) || isObject(value))) return any
  const list = `Schema.Literals([${literals.map((value) => JSON.stringify(value)).join(", ")}])`
  if (literals.length === values.length) return list
  return literals.length === 0 ? "Schema.Null" : `Schema.NullOr(${list})`
}

/** The name of a member in code. `__proto__` would set the prototype. */
export const keyOf = (name: string): string => {
  if (name === "__proto__") return '["__proto__"]'
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
}

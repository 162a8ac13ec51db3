/** A JSON value as a literal in code, of the type that a schema gives it. */
import type { JsonDocument, JsonType } from "./JsonType.ts"
import { type Expression, quoted, word } from "./SourceText.ts"

/** Values inside values, and values of one literal. */
const [maxDepth, maxValues] = [64, 1024]

/** Undefined for a value that the type does not accept, or that is too large. */
export const make = (value: unknown, { type, definitions }: JsonDocument): Expression | undefined => {
  let values = 0
  const print = (value: unknown, type: JsonType, depth: number): Expression | undefined => {
    values += 1
    if (depth > maxDepth || values > maxValues) return undefined
    const all = (given: ReadonlyArray<unknown>, typeOf: (index: number) => JsonType | undefined) => {
      const elements = given.map((one, index) => {
        const inner = typeOf(index)
        return inner && print(one, inner, depth + 1)
      })
      return elements.every((element) => element !== undefined) ? { kind: "list" as const, elements } : undefined
    }
    switch (type.kind) {
      case "unknown":
        return untyped(value, (inner) => print(inner, type, depth + 1))
      case "null":
        return value === null ? word("null") : undefined
      case "boolean":
        return typeof value === "boolean" ? word(String(value)) : undefined
      case "string":
        return typeof value === "string" ? word(quoted(value)) : undefined
      case "bigint":
        return typeof value === "string" && /^-?\d{1,20}$/.test(value) ? word(`${BigInt(value)}n`) : undefined
      case "literals":
        return type.values.some((literal) => literal === value) ? word(`${scalar(value)} as const`) : undefined
      case "number":
        if (value === "NaN" || value === "Infinity" || value === "-Infinity") return word(value)
        return typeof value === "number" ? word(String(value)) : undefined
      case "finite":
      case "integer": {
        const isNumber = typeof value === "number" && (type.kind === "finite" || Number.isSafeInteger(value))
        return isNumber && isWithin(value, type.bounds) ? word(String(value)) : undefined
      }
      case "array":
        return Array.isArray(value) ? all(value, () => type.items) : undefined
      case "tuple": {
        const required = type.elements.filter(({ optional }) => !optional).length
        if (!Array.isArray(value) || value.length < required) return undefined
        return all(value, (index) => type.elements[index]?.type ?? type.rest)
      }
      case "object": {
        if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined
        const given = Object.entries(value)
        if (type.members.some(({ name, optional }) => !optional && !Object.hasOwn(value, name))) return undefined
        const members = given.flatMap(([name, inner]) => {
          const known = type.members.find((member) => member.name === name)?.type ?? type.rest
          const printed = known && print(inner, known, depth + 1)
          return printed === undefined ? [] : [[name, printed] as const]
        })
        return members.length === given.length ? { kind: "object", members } : undefined
      }
      case "union": {
        for (const member of type.members) {
          const printed = print(value, member, depth + 1)
          if (printed !== undefined) return printed
        }
        return undefined
      }
      case "reference": {
        const definition = definitions.get(type.name)
        return definition && print(value, definition, depth + 1)
      }
    }
  }
  return print(value, type, 0)
}

/** The same for the text of a value. */
export const fromText = (text: string, document: JsonDocument): Expression | undefined => {
  try {
    return make(JSON.parse(text), document)
  } catch {
    return undefined
  }
}

const isWithin = (
  value: number,
  bounds: Extract<JsonType, { kind: "finite" | "number" | "integer" }>["bounds"],
): boolean =>
  bounds.every(({ keyword, limit }) => {
    switch (keyword) {
      case "minimum":
        return value >= limit
      case "maximum":
        return value <= limit
      case "exclusiveMinimum":
        return value > limit
      case "exclusiveMaximum":
        return value < limit
    }
  })

const scalar = (value: unknown): string => (typeof value === "string" ? quoted(value) : String(value))

const untyped = (value: unknown, inner: (value: unknown) => Expression | undefined): Expression | undefined => {
  if (typeof value !== "object" || value === null) return word(scalar(value))
  if (Array.isArray(value)) {
    const elements = value.map(inner)
    return elements.every((element) => element !== undefined) ? { kind: "list", elements } : undefined
  }
  const members = Object.entries(value).flatMap(([name, one]) => {
    const printed = inner(one)
    return printed === undefined ? [] : [[name, printed] as const]
  })
  return members.length === Object.keys(value).length ? { kind: "object", members } : undefined
}

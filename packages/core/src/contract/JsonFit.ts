/**
 * Whether a receiver accepts the JSON values that a sender sends, by their types. Bounds of numbers are not compared:
 * the receiver checks them.
 */
import type { JsonDocument, JsonType, Literal } from "./JsonType.ts"

/** `all`: every value that the sender may send. `some`: at least one. */
export type Amount = "all" | "some"

/** Comparisons of one pair of documents, and inside each other. Types beyond them count as fitting. */
const [maxComparisons, maxDepth] = [10_000, 256]

export const fits = (sent: JsonDocument, taken: JsonDocument, amount: Amount): boolean => {
  /** Results of pairs; true for one that is under way, in types that contain themselves. */
  const compared = new Map<JsonType, Map<JsonType, boolean>>()
  let comparisons = 0
  let depth = 0
  const fit = (one: JsonType, other: JsonType): boolean => {
    comparisons += 1
    const others = compared.get(one) ?? new Map<JsonType, boolean>()
    const known = others.get(other)
    if (known !== undefined || comparisons > maxComparisons || depth > maxDepth) return known ?? true
    compared.set(one, others.set(other, true))
    depth += 1
    const isFitting = compare(one, other)
    depth -= 1
    others.set(other, isFitting)
    return isFitting
  }
  const compare = (one: JsonType, other: JsonType): boolean => {
    if (one.kind === "unknown" || other.kind === "unknown") return true
    if (one.kind === "reference" || other.kind === "reference") {
      return fit(resolved(one, sent), resolved(other, taken))
    }
    if (one.kind === "union") {
      return amount === "all"
        ? one.members.every((member) => fit(member, other))
        : one.members.some((member) => fit(member, other))
    }
    if (one.kind === "literals") {
      const test = (value: Literal) =>
        other.kind === "union" ? other.members.some((member) => takes(member, value)) : takes(other, value)
      const takes = (type: JsonType, value: Literal): boolean => {
        if (type.kind === "reference") return fit({ kind: "literals", values: [value] }, type)
        return accepts(type, value)
      }
      return amount === "all" ? one.values.every(test) : one.values.some(test)
    }
    if (other.kind === "union") return other.members.some((member) => fit(one, member))
    if (other.kind === "literals") return amount === "some" && other.values.some((value) => accepts(one, value))
    return composite(one, other)
  }
  const composite = (one: JsonType, other: JsonType): boolean => {
    if (one.kind === "object" && other.kind === "object") return object(one, other)
    const isList = one.kind === "array" || one.kind === "tuple"
    if (isList && (other.kind === "array" || other.kind === "tuple")) return list(one, other)
    if (one.kind === other.kind) return true
    return wider(one.kind, other.kind) || (amount === "some" && wider(other.kind, one.kind))
  }
  const object = (one: Extract<JsonType, { kind: "object" }>, other: typeof one): boolean =>
    other.members.every(({ name, type, optional }) => {
      const given = one.members.find((member) => member.name === name)
      if (given === undefined) return optional || (one.rest !== undefined && amount === "some")
      return (optional || !given.optional || amount === "some") && fit(given.type, type)
    }) &&
    (one.rest === undefined || other.rest === undefined || fit(one.rest, other.rest))
  const list = (one: List, other: List): boolean => {
    const length = Math.max(elements(one).length, elements(other).length)
    for (let index = 0; index < length; index++) {
      const given = at(one, index)
      const wanted = at(other, index)
      const isRequired = elements(other)[index]?.optional === false
      if (given === undefined) {
        if (isRequired) return false
      } else if (wanted === undefined) {
        if (amount === "all" || elements(one)[index]?.optional === false) return false
      } else {
        const isSure = elements(one)[index]?.optional === false
        if ((isRequired && !isSure && amount === "all") || !fit(given, wanted)) return false
      }
    }
    const [rest, otherRest] = [restOf(one), restOf(other)]
    if (rest === undefined) return true
    return otherRest === undefined ? amount === "some" : fit(rest, otherRest)
  }
  return fit(sent.type, taken.type)
}

type List = Extract<JsonType, { kind: "array" | "tuple" }>

const elements = (list: List) => (list.kind === "tuple" ? list.elements : [])

const restOf = (list: List): JsonType | undefined => (list.kind === "tuple" ? list.rest : list.items)

const at = (list: List, index: number): JsonType | undefined => elements(list)[index]?.type ?? restOf(list)

const resolved = (type: JsonType, { definitions }: JsonDocument): JsonType =>
  type.kind === "reference" ? (definitions.get(type.name) ?? { kind: "unknown" }) : type

/** Whether every value of the first kind is one of the second. */
const wider = (one: JsonType["kind"], other: JsonType["kind"]): boolean =>
  (one === "integer" && (other === "finite" || other === "number")) ||
  (one === "finite" && other === "number") ||
  (one === "bigint" && other === "string")

const accepts = (type: JsonType, value: Literal): boolean => {
  switch (type.kind) {
    case "unknown":
      return true
    case "literals":
      return type.values.includes(value)
    case "boolean":
      return typeof value === "boolean"
    case "string":
      return typeof value === "string"
    case "bigint":
      return typeof value === "string" && /^-?\d+$/.test(value)
    case "number":
    case "finite":
      return typeof value === "number"
    case "integer":
      return Number.isSafeInteger(value)
    default:
      return false
  }
}

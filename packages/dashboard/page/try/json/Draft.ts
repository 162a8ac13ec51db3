/** Values of a form for JSON, parts of which may be no JSON while the user types. */
import { type Json, read, write } from "./Json.ts"
import type { JsonForm } from "./JsonForm.ts"

/** Text that is no value of JSON; the form cannot be sent while it has one. */
export class NotJson {
  readonly text: string
  readonly problem: string

  constructor(text: string, problem: string) {
    this.text = text
    this.problem = problem
  }
}

/** A value of the form, part of which may be no value yet. */
export type Draft = Json | NotJson | ReadonlyArray<Draft> | { readonly [name: string]: Draft | undefined }

export const textOf = (value: Draft): string => {
  if (value instanceof NotJson) return value.text
  if (typeof value === "string") return value
  return isJson(value) ? write(value) : ""
}

export const readJson = (text: string): Draft => {
  try {
    return read(text)
  } catch (error) {
    return new NotJson(text, error instanceof Error ? error.message : "not JSON")
  }
}

export const readLeaf = (text: string, form: JsonForm): Draft => {
  const trimmed = text.trim()
  if (form.kind === "digits") {
    return /^-?\d+$/.test(trimmed) ? trimmed : new NotJson(text, "an integer is needed")
  }
  if (form.kind !== "number") return text
  const value = Number(trimmed)
  // A text such as "1." or "1e" is not a number yet, and "-0" or "1.0" not the text of one.
  if (trimmed === "" || Number.isNaN(value)) return new NotJson(text, "a number is needed")
  const problem = boundProblem(value, form)
  return problem === undefined && String(value) === trimmed ? value : new NotNumber(text, value, problem)
}

/** A number whose text is not that of JSON, such as `1.50`; or which is outside of its bounds. */
export class NotNumber extends NotJson {
  readonly value: number
  readonly isValid: boolean

  constructor(text: string, value: number, problem: string | undefined) {
    super(text, problem ?? "")
    this.value = value
    this.isValid = problem === undefined
  }
}

const boundProblem = (value: number, form: Extract<JsonForm, { kind: "number" }>): string | undefined => {
  const { isInteger, minimum, maximum, isAboveMinimum, isBelowMaximum } = form
  if (isInteger && !Number.isInteger(value)) return "an integer is needed"
  if (minimum !== undefined && (isAboveMinimum ? value <= minimum : value < minimum)) {
    return `must be ${isAboveMinimum ? "above" : "at least"} ${minimum}`
  }
  if (maximum !== undefined && (isBelowMaximum ? value >= maximum : value > maximum)) {
    return `must be ${isBelowMaximum ? "below" : "at most"} ${maximum}`
  }
  return undefined
}

export const isDraftArray = (value: Draft): value is ReadonlyArray<Draft> => Array.isArray(value)

export const isDraftObject = (value: Draft): value is { readonly [name: string]: Draft | undefined } =>
  typeof value === "object" && value !== null && !(value instanceof NotJson) && !Array.isArray(value)

export const isJson = (value: Draft): value is Json => {
  if (value instanceof NotJson) return false
  if (isDraftArray(value)) return value.every(isJson)
  return !isDraftObject(value) || Object.values(value).every((member) => member === undefined || isJson(member))
}

/** The value of a form, or the first problem in it. */
export const jsonOf = (draft: Draft, path = ""): Json | NotJson => {
  if (draft instanceof NotNumber && draft.isValid) return draft.value
  if (draft instanceof NotJson)
    return new NotJson(draft.text, path === "" ? draft.problem : `${path}: ${draft.problem}`)
  if (isDraftArray(draft)) {
    const items: Array<Json> = []
    for (const [index, item] of draft.entries()) {
      const value = jsonOf(item, `${path}[${index}]`)
      if (value instanceof NotJson) return value
      items.push(value)
    }
    return items
  }
  if (!isDraftObject(draft)) return draft
  const members: Array<readonly [string, Json]> = []
  for (const [name, member] of Object.entries(draft)) {
    if (member === undefined) continue
    const value = jsonOf(member, path === "" ? name : `${path}.${name}`)
    if (value instanceof NotJson) return value
    members.push([name, value])
  }
  return Object.fromEntries(members)
}

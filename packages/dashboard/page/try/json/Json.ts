/** Values of JSON with integers of any size. */

export type Json =
  | null
  | boolean
  | number
  | bigint
  | string
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json | undefined }

/** The text of a value. Integers beyond the doubles are a bigint, and written as digits. */
export const write = (value: Json): string => {
  if (typeof value === "bigint") return value.toString()
  if (typeof value !== "object" || value === null) return JSON.stringify(value)
  if (isArray(value)) return `[${value.map(write).join(",")}]`
  const members = Object.entries(value).flatMap(([name, member]) =>
    member === undefined ? [] : [`${JSON.stringify(name)}:${write(member)}`],
  )
  return `{${members.join(",")}}`
}

interface ReviverContext {
  readonly source?: string
}

/** Reads JSON. Integers beyond the doubles become bigint where the browser tells their digits. */
export const read = (text: string): Json => {
  const revive = (_: string, value: unknown, context?: ReviverContext): unknown => {
    const digits = context?.source
    const isLarge = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)
    return isLarge && digits !== undefined && /^-?\d+$/.test(digits) ? BigInt(digits) : value
  }
  const json: Json = JSON.parse(text, revive)
  return json
}

export const isArray = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

export const isObject = (value: Json | undefined): value is { readonly [name: string]: Json | undefined } =>
  typeof value === "object" && value !== null && !isArray(value)

/** Reads the JSON headers of frames. The values come from user code's process: each one is checked where it is used. */

/** A JSON object, or an error. */
export type Header = Readonly<Record<string, unknown>>

/** @throws Error if the text is not a JSON object */
export const parse = (text: string): Header => objectOf(JSON.parse(text))

/**
 * The same, with integers beyond 2^53 as bigint.
 * @throws Error if the text is not a JSON object
 */
export const parseExact = (text: string): Header => objectOf(JSON.parse(text, exact))

/** The third argument came with Node 21, and is not in the types of TypeScript yet. */
function exact(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value
  const source = context?.source ?? ""
  return /^-?\d+$/.test(source) ? BigInt(source) : value
}

const objectOf = (value: unknown): Header => {
  if (isRecord(value)) return value
  throw new Error("a header is not an object")
}

export const isRecord = (value: unknown): value is Header =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Undefined for a value of another type. */
export const text = (header: Header, key: string): string | undefined => {
  const value = header[key]
  return typeof value === "string" ? value : undefined
}

/** An integer; undefined for another value. */
export const integer = (header: Header, key: string): number | undefined => {
  const value = header[key]
  return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined
}

/** Empty for another value. */
export const list = (header: Header, key: string): ReadonlyArray<unknown> => {
  const value = header[key]
  return Array.isArray(value) ? value : []
}

/** Fields of JSON documents of stores and sources of credentials, without trust in their types. */
import { Result } from "effect"

/** A JSON document, or undefined for a text that is none. */
export const parse = (text: string): unknown =>
  Result.getOrUndefined(Result.try({ try: (): unknown => JSON.parse(text), catch: () => "no JSON" }))

export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.getOwnPropertyDescriptor(value, name)?.value
    : undefined

/** A text that is not empty. */
export const text = (value: unknown, name: string): string | undefined => {
  const found = field(value, name)
  return typeof found === "string" && found !== "" ? found : undefined
}

/** A number, also if it is written as a text, as 64-bit integers are. */
export const number = (value: unknown, name: string): number | undefined => {
  const found = field(value, name)
  const parsed = typeof found === "string" && found !== "" ? Number(found) : found
  return typeof parsed === "number" && Number.isFinite(parsed) ? parsed : undefined
}

export const items = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

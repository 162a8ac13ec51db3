/** Compares an HTTP response with what a case expects. Returns one line of text for each difference. */
import { tagHeader } from "@nereid/core/internal/wire/ErrorHeaders"
import type { HttpExpected } from "./Case.ts"
import type { HttpReply } from "./HttpConnection.ts"
import { missing } from "./PartialMatch.ts"

const fits = (actual: string | undefined, expected: string | RegExp | undefined): boolean =>
  expected instanceof RegExp ? actual !== undefined && expected.test(actual) : actual === expected

export const compare = ({ status, headers, body }: HttpReply, expected: HttpExpected): ReadonlyArray<string> => {
  const found: Array<string> = []
  const text = body.toString()
  if (status !== expected.status) found.push(`status ${status}, expected ${expected.status}: ${text.slice(0, 300)}`)
  const expectedHeaders = { ...expected.headers, ...(expected.tag === undefined ? {} : { [tagHeader]: expected.tag }) }
  for (const [name, value] of Object.entries(expectedHeaders)) {
    const actual = headers.get(name)
    if (!fits(actual, value)) found.push(`${name}: ${actual}, expected ${String(value)}`)
  }
  if (expected.body !== undefined && !fits(text, expected.body))
    found.push(`body ${text}, expected ${String(expected.body)}`)
  if (expected.shows !== undefined) found.push(...missing(expected.shows, JSON.parse(text)))
  if (expected.error !== undefined) {
    const response: unknown = JSON.parse(text)
    const [[key, error] = [], ...others] = Object.entries(response ?? {})
    if (key !== "error" || others.length > 0 || typeof error !== "string" || !fits(error, expected.error)) {
      found.push(`body ${text}, expected the error ${String(expected.error)}`)
    }
    if (headers.get("content-type") !== "application/json") found.push(`an error as ${headers.get("content-type")}`)
  }
  return found
}

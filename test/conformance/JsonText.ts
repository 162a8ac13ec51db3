/**
 * JSON as the v2 protocol writes it, read for the tests: `JSON.parse`, but a number stays its text, so that INT64 keeps
 * its digits, and NaN and the infinities are numbers.
 */

export interface NumberText {
  readonly number: string
}

const token = /"(?:[^"\\]|\\.)*"|-?(?:Infinity|NaN|[0-9][-+.0-9eE]*)/g

/** @throws SyntaxError if the text is not JSON */
export const parse = (text: string): unknown =>
  JSON.parse(text.replaceAll(token, (found) => (found.startsWith('"') ? found : `{"number":"${checked(found)}"}`)))

export const isNumberText = (value: unknown): value is NumberText =>
  typeof value === "object" && value !== null && "number" in value && typeof value.number === "string"

const checked = (number: string): string => {
  if (/^(-?Infinity|NaN|-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)$/.test(number)) return number
  throw new SyntaxError(`${number} is no number of JSON`)
}

/** Parameters as JSON text, as a model reads and writes them. */
import { noParameters, type Parameter, type Parameters } from "@nereid/core/internal/request/Request"
import { parseExact } from "./Header.ts"

/** Undefined if there are no parameters. */
export const print = (parameters: Parameters): string | undefined => {
  let text = ""
  for (const name in parameters) {
    const value = parameters[name]
    if (value === undefined) continue
    text += `${text === "" ? "{" : ","}${JSON.stringify(name)}:${printValue(value)}`
  }
  return text === "" ? undefined : `${text}}`
}

/** A double keeps its fraction, so that Python reads a float. JSON has no infinities, Python's parser does. */
const printValue = (value: Parameter): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (typeof value !== "number") return String(value)
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return `${Object.is(value, -0) ? "-0" : value}.0`
  return Number.isFinite(value) ? String(value) : JSON.stringify(value)
}

/** @throws Error if the text is not an object of booleans, numbers and strings */
export const parse = (text: string): Parameters => {
  if (text === "" || text === "{}") return noParameters
  const parameters: Record<string, Parameter> = {}
  for (const [name, value] of Object.entries(parseExact(text))) {
    if (typeof value === "number") parameters[name] = Number.isSafeInteger(value) ? BigInt(value) : value
    else if (typeof value === "string" || typeof value === "boolean" || typeof value === "bigint") {
      parameters[name] = value
    } else throw new Error(`parameter ${JSON.stringify(name)} of a response is not a boolean, number or string`)
  }
  return parameters
}

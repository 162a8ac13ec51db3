/** Reads the value of a parameter from JSON: a scalar. KnownParameters.ts validates it. */
import { InvalidRequest } from "../../error/InferenceError.ts"
import type { Parameter } from "../../request/Request.ts"
import type { JsonReader } from "./JsonReader.ts"

/**
 * Reads a parameter; undefined if the value is not a scalar. Integers of at most 64 bits are bigints, so that doubles
 * remain doubles when encoded again.
 */
export const readParameter = (reader: JsonReader): Parameter | undefined => {
  switch (reader.kind()) {
    case "boolean":
      return reader.boolean()
    case "string":
      return reader.string()
    case "number": {
      const text = reader.numberText()
      if (!/^-?[0-9]{1,20}$/.test(text)) return readNumber(reader, text)
      const integer = BigInt(text)
      return integer >= -(2n ** 63n) && integer < 2n ** 64n ? integer : Number(text)
    }
    default:
      reader.skip()
      return undefined
  }
}

/** The error for a parameter that is not a scalar. */
export const invalidType = (name: string) => {
  const rule = "It should be either 'int', 'bool', or 'string'."
  return new InvalidRequest({ message: `parameter '${name}' has invalid type. ${rule}` })
}

const readNumber = (reader: JsonReader, text: string): number => {
  const value = Number(text.replace(/Inf$/, "Infinity"))
  if (Number.isFinite(value) || !/[0-9]/.test(text)) return value
  return reader.fail("Number too big to be stored in double.")
}

/**
 * Decodes the JSON body of a model load or unload over HTTP: optional parameters by name. The server interprets them.
 */
import type { Result } from "effect"
import type { InferenceError } from "../../error/InferenceError.ts"
import { refuseDuplicate } from "./DistinctKeys.ts"
import { caught, members, maxElements, tooMany, wrongKind } from "./JsonMembers.ts"
import { JsonReader } from "./JsonReader.ts"

/** Parameters by name: strings and booleans, or undefined for values of other types, which are invalid. */
export type ControlParameters = ReadonlyMap<string, string | boolean | undefined>

/** Reads the parameters of a body; an empty body has none. Refuses duplicate names. */
export const read = (bytes: Uint8Array): Result.Result<ControlParameters, InferenceError> =>
  caught(() => {
    const parameters = new Map<string, string | boolean | undefined>()
    const reader = new JsonReader(bytes, "request")
    if (reader.peek() === -1) return parameters
    members(reader, ["parameters"], () => {
      if (reader.kind() !== "object") wrongKind(reader, "parameters", "object")
      reader.object((name) => {
        if (parameters.has(name)) refuseDuplicate(reader, name)
        parameters.set(name, readParameter(reader))
        if (parameters.size > maxElements) throw tooMany("parameters")
      })
    })
    reader.end()
    return parameters
  })

const readParameter = (reader: JsonReader): string | boolean | undefined => {
  switch (reader.kind()) {
    case "string":
      return reader.string()
    case "boolean":
      return reader.boolean()
    default:
      reader.skip()
      return undefined
  }
}

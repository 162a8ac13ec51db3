/**
 * Decodes requests of the generate extension: any JSON object. A key that names an input is a tensor
 * (GenerateTensor.ts), and `id` is the request's id. Any other key is a parameter, at the top level or in `parameters`.
 * JsonDecoder.ts decodes `infer` requests.
 */
import type { Result } from "effect"
import { type InferenceError, InvalidRequest } from "../../error/InferenceError.ts"
import { readTensor } from "./GenerateTensor.ts"
import type { Parameter } from "../../request/Request.ts"
import { DistinctKeys } from "../json/DistinctKeys.ts"
import { caught, maxElements, readString, tooMany, wrongKind, wrongType } from "../json/JsonMembers.ts"
import { invalidType, readParameter } from "../json/JsonParameter.ts"
import { JsonReader } from "../json/JsonReader.ts"
import * as KnownParameters from "../../wire/KnownParameters.ts"
import type { ModelInterface } from "../../wire/ModelInterface.ts"
import type { WireRequest, WireTensor } from "../../wire/WireRequest.ts"

/**
 * Reads the body of a request for `model`. Refuses duplicate keys of an object, but leaves duplicate inputs to
 * Validation.ts. If a parameter is at the top level and in `parameters`, the first one counts.
 */
export const decodeGenerate = (
  body: Uint8Array,
  { name, version, signature, maxBatchSize }: ModelInterface,
): Result.Result<WireRequest, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(body, "request")
    const specs = new Map(signature.inputs.map((spec) => [spec.name, spec]))
    const inputs: Array<WireTensor> = []
    const parameters = new Map<string, Parameter>()
    let id: string | undefined

    const member = (key: string) => {
      const spec = specs.get(key)
      if (spec === undefined) addParameter(key)
      else if (inputs.push(readTensor(reader, spec, maxBatchSize > 0)) > maxElements) throw tooMany("inputs")
    }
    const addParameter = (key: string) => {
      const value = readParameter(reader)
      if (value === undefined) throw invalidType(key)
      const problem = KnownParameters.jsonProblem(key, value, wrongType)
      if (problem !== undefined) throw problem
      if (!parameters.has(key)) parameters.set(key, value)
      if (parameters.size > maxElements) throw tooMany("parameters")
    }

    if (reader.kind() !== "object") wrongKind(reader, "request", "object")
    const keys = new DistinctKeys()
    reader.object((key) => {
      if (key === "parameters" || !specs.has(key)) keys.add(reader, key)
      if (key === "parameters") readNested(reader, specs, member)
      else if (key === "id" && !specs.has(key)) id = readString(reader, key)
      else member(key)
    })
    reader.end()
    return {
      modelName: name,
      modelVersion: version,
      id: id ?? "",
      parameters: Object.fromEntries(parameters),
      inputs,
      outputs: [],
    }
  })

const keyword = "'parameters'"

/** Reads the members of the object under `parameters`. Errors name the object. */
const readNested = (reader: JsonReader, specs: ReadonlyMap<string, unknown>, member: (key: string) => void): void => {
  if (reader.kind() !== "object") {
    // A syntax error comes first.
    reader.skip()
    throw new InvalidRequest({ message: `Expected JSON object for keyword: ${keyword}` })
  }
  try {
    const keys = new DistinctKeys()
    reader.object((key) => {
      if (!specs.has(key)) keys.add(reader, key)
      member(key)
    })
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    throw new InvalidRequest({ message: `Converting keyword: ${keyword}: ${error.message}` })
  }
}

/**
 * Encodes responses of the generate extension: one flat JSON object with the elements of each output. JsonEncoder.ts
 * encodes `infer` responses.
 */
import { Result } from "effect"
import { InvalidRequest } from "../../error/InferenceError.ts"
import { noParameters } from "../../request/Request.ts"
import { JsonWriter } from "../json/JsonWriter.ts"
import { elementCount } from "../../tensor/TypedTensor.ts"
import type { WireResponse } from "../../wire/WireRequest.ts"

/**
 * Writes a response: its id (if any), model and version, each output, each parameter. An output of one element is a
 * value, any other an array. Names are unique: an output takes precedence over the names of the protocol, and both over
 * a parameter. Fails if an output has no JSON form.
 */
export const encodeGenerated = (response: WireResponse): Result.Result<Uint8Array, InvalidRequest> => {
  const { id, modelName, modelVersion, outputs, parameters } = response
  const isOutput = (name: string) => outputs.some((output) => output.name === name)
  const writer = new JsonWriter()
  let before = "{"
  const key = (name: string) => {
    writer.ascii(before)
    before = ","
    writer.string(name)
    writer.ascii(":")
  }
  const ofProtocol = (name: string, value: string) => {
    if (isOutput(name)) return
    key(name)
    writer.string(value)
  }
  if (id !== "") ofProtocol("id", id)
  ofProtocol("model_name", modelName)
  ofProtocol("model_version", modelVersion)
  for (const tensor of outputs) {
    key(tensor.name)
    const isArray = elementCount(tensor.shape) !== 1
    if (isArray) writer.ascii("[")
    const problem = writer.elements(tensor)
    if (problem !== undefined) return Result.fail(new InvalidRequest({ message: problem }))
    if (isArray) writer.ascii("]")
  }
  if (parameters !== noParameters) {
    for (const [name, value] of Object.entries(parameters)) {
      if (isOutput(name) || name === "model_name" || name === "model_version" || (name === "id" && id !== "")) continue
      key(name)
      writer.scalar(value)
    }
  }
  writer.ascii("}")
  return Result.succeed(writer.written())
}

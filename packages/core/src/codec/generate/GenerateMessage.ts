/**
 * The JSON of the generate extension on the client side: writes requests and reads responses. The server side is in
 * GenerateDecoder.ts and GenerateEncoder.ts.
 *
 * The JSON has elements but no shapes. The signature determines the shapes if at most one dim varies.
 */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError, Unsupported } from "../../error/InferenceError.ts"
import type { Parameter } from "../../request/Request.ts"
import { isDynamic, type Signature, type TensorSpec } from "../../tensor/TensorSpec.ts"
import { elementCount } from "../../tensor/TypedTensor.ts"
import type { WireRequest, WireResponse, WireTensor } from "../../wire/WireRequest.ts"
import { readTensor } from "./GenerateTensor.ts"
import { DistinctKeys } from "../json/DistinctKeys.ts"
import { caught, readString, wrongKind } from "../json/JsonMembers.ts"
import { readParameter } from "../json/JsonParameter.ts"
import { JsonReader } from "../json/JsonReader.ts"
import { JsonWriter } from "../json/JsonWriter.ts"

/** The properties of a model that both directions require. */
export interface GenerateModel {
  readonly name: string
  readonly signature: Signature
  /** 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
}

/** The reason why a model of this signature has no generate endpoint; undefined if it has one. */
export const problem = ({ name, signature }: GenerateModel): Unsupported | undefined => {
  for (const { name: tensor, datatype, dims } of [...signature.inputs, ...signature.outputs]) {
    const subject = `'${tensor}' of model '${name}'`
    if (dims.filter(varies).length > 1) {
      return new Unsupported({
        message: `${subject} has more than one dynamic dimension, which generate does not support`,
      })
    }
    // Inputs may be left out.
    if ((datatype === "FP16" || datatype === "BF16") && signature.outputs.some(({ name }) => name === tensor)) {
      return new Unsupported({ message: `${subject} is ${datatype}, which JSON cannot represent` })
    }
  }
  return undefined
}

const varies = (dim: TensorSpec["dims"][number]) => typeof dim === "string" || isDynamic(dim)

/** Encodes a request. Fails if an input has no JSON form, such as FP16 and bytes that are not text. */
export const encode = (wire: WireRequest): Result.Result<Uint8Array, Unsupported> => {
  const writer = new JsonWriter()
  let before = "{"
  const key = (name: string) => {
    writer.ascii(before)
    before = ","
    writer.string(name)
    writer.ascii(":")
  }
  if (wire.id !== "") {
    key("id")
    writer.string(wire.id)
  }
  for (const tensor of wire.inputs) {
    key(tensor.name)
    const isArray = elementCount(tensor.shape) !== 1
    if (isArray) writer.ascii("[")
    const problem = writer.elements(tensor)
    if (problem !== undefined) return Result.fail(new Unsupported({ message: problem }))
    if (isArray) writer.ascii("]")
  }
  key("parameters")
  before = "{"
  for (const [name, value] of Object.entries(wire.parameters)) {
    key(name)
    writer.scalar(value)
  }
  writer.ascii(before === "{" ? "{}}" : "}}")
  return Result.succeed(writer.written())
}

export type Event =
  | { readonly _tag: "Response"; readonly response: WireResponse }
  | { readonly _tag: "Failure"; readonly message: string }

/** One response of a model, or the text of the failure that stands in its place. */
export const decode = (
  document: Uint8Array,
  { name, signature, maxBatchSize }: GenerateModel,
): Result.Result<Event, InferenceError> => {
  const specs = new Map(signature.outputs.map((spec) => [spec.name, spec]))
  const outputs: Array<WireTensor> = []
  const parameters: Record<string, Parameter> = {}
  const texts: { [K in "id" | "model_name" | "model_version" | "error"]?: string } = {}
  return caught(() => {
    const reader = new JsonReader(document, "response")
    if (reader.kind() !== "object") wrongKind(reader, "response", "object")
    const keys = new DistinctKeys()
    reader.object((key) => {
      keys.add(reader, key)
      const spec = specs.get(key)
      if (spec !== undefined) outputs.push(readTensor(reader, spec, maxBatchSize > 0))
      else if (key === "id" || key === "model_name" || key === "model_version" || key === "error") {
        texts[key] = readString(reader, key)
      } else {
        const value = readParameter(reader)
        if (value !== undefined) parameters[key] = value
      }
    })
    reader.end()
  }).pipe(
    Result.mapError(
      ({ message }) => new ExecutionFailed({ message: `cannot decode the server's response: ${message}` }),
    ),
    Result.map((): Event => {
      const { id = "", model_name: modelName = name, model_version: modelVersion = "", error } = texts
      if (error !== undefined) return { _tag: "Failure", message: error }
      return { _tag: "Response", response: { id, modelName, modelVersion, parameters, outputs } }
    }),
  )
}

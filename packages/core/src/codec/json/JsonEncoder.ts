/**
 * Encodes the JSON of the v2 protocol: responses, and requests with their tensors inside or after the document.
 * JsonDecoder.ts decodes; BinaryExtension.ts is the entry point for front ends and clients.
 */
import { Result } from "effect"
import { InvalidRequest } from "../../error/InferenceError.ts"
import type { Parameters } from "../../request/Request.ts"
import { JsonWriter } from "./JsonWriter.ts"
import * as RegionReference from "../../wire/RegionReference.ts"
import type { WireRequest, WireResponse, WireTensor } from "../../wire/WireRequest.ts"

/** Writes the document of a request with binary inputs after it, which requests binary outputs. */
export const writeRequest = (wire: WireRequest): Uint8Array => {
  const writer = new JsonWriter()
  openRequest(writer, { ...wire.parameters, binary_data_output: true }, wire)
  for (const [index, tensor] of wire.inputs.entries()) {
    if (index > 0) writer.ascii(",")
    writeTensor(writer, tensor)
    writeSize(writer, tensor)
  }
  closeRequest(writer, wire, true)
  return writer.written()
}

/** Writes the document of a request with JSON inputs, which requests JSON outputs. */
export const writeJsonRequest = (wire: WireRequest): Result.Result<Uint8Array, InvalidRequest> => {
  const writer = new JsonWriter()
  openRequest(writer, wire.parameters, wire)
  for (const [index, tensor] of wire.inputs.entries()) {
    if (index > 0) writer.ascii(",")
    const problem = writeData(writer, tensor)
    if (problem !== undefined) return Result.fail(problem)
  }
  closeRequest(writer, wire, false)
  return Result.succeed(writer.written())
}

const openRequest = (writer: JsonWriter, parameters: Parameters, { id }: WireRequest): void => {
  writer.ascii("{")
  if (id !== "") {
    writer.ascii('"id":')
    writer.string(id)
    writer.ascii(",")
  }
  if (Object.keys(parameters).length > 0) {
    writeParameters(writer, parameters)
    writer.ascii(",")
  }
  writer.ascii('"inputs":[')
}

const closeRequest = (writer: JsonWriter, { outputs }: WireRequest, binaryOutputs: boolean): void => {
  writer.ascii("]")
  if (outputs.length > 0) {
    writer.ascii(',"outputs":[')
    for (const [index, { name, binary }] of outputs.entries()) {
      writer.ascii(index > 0 ? ',{"name":' : '{"name":')
      writer.string(name)
      writer.ascii(",")
      writeParameters(writer, { binary_data: binary ?? binaryOutputs })
      writer.ascii("}")
    }
    writer.ascii("]")
  }
  writer.ascii("}")
}

/** The document of a response; by position in its outputs, whether an output follows it as binary data. */
export const writeResponse = (
  response: WireResponse,
  binary: ReadonlyArray<boolean>,
): Result.Result<Uint8Array, InvalidRequest> => {
  const writer = new JsonWriter()
  writer.ascii("{")
  if (response.id !== "") {
    writer.ascii('"id":')
    writer.string(response.id)
    writer.ascii(",")
  }
  writer.ascii('"model_name":')
  writer.string(response.modelName)
  writer.ascii(',"model_version":')
  writer.string(response.modelVersion)
  writer.ascii(",")
  if (Object.keys(response.parameters).length > 0) {
    writeParameters(writer, response.parameters)
    writer.ascii(",")
  }
  writer.ascii('"outputs":[')
  for (const [index, tensor] of response.outputs.entries()) {
    if (index > 0) writer.ascii(",")
    if (tensor.region === undefined && binary[index] !== true) {
      const problem = writeData(writer, tensor)
      if (problem !== undefined) return Result.fail(problem)
      continue
    }
    writeTensor(writer, tensor)
    if (tensor.region === undefined) {
      writeSize(writer, tensor)
      continue
    }
    writeParameters(writer, RegionReference.parameters(tensor.region))
    writer.ascii("}")
  }
  writer.ascii("]}")
  return Result.succeed(writer.written())
}

/** Writes a tensor with its elements; returns an error if they have no JSON form. */
const writeData = (writer: JsonWriter, tensor: WireTensor): InvalidRequest | undefined => {
  writeTensor(writer, tensor)
  writer.ascii('"data":[')
  const problem = writer.elements(tensor)
  if (problem !== undefined) return new InvalidRequest({ message: problem })
  writer.ascii("]}")
  return undefined
}

/** Writes the members that all tensors have, followed by a comma. */
const writeTensor = (writer: JsonWriter, { name, datatype, shape }: WireTensor): void => {
  writer.ascii('{"name":')
  writer.string(name)
  writer.ascii(',"datatype":')
  writer.string(datatype)
  writer.ascii(',"shape":[')
  for (let axis = 0; axis < shape.length; axis++) {
    if (axis > 0) writer.ascii(",")
    writer.whole(shape[axis] ?? 0)
  }
  writer.ascii("],")
}

/** The end of a tensor whose bytes follow the document. */
const writeSize = (writer: JsonWriter, { bytes }: WireTensor): void => {
  writer.ascii('"parameters":{"binary_data_size":')
  writer.whole(bytes.length)
  writer.ascii("}}")
}

const writeParameters = (writer: JsonWriter, parameters: Parameters): void => {
  writer.ascii('"parameters":{')
  let first = true
  for (const [name, value] of Object.entries(parameters)) {
    if (!first) writer.ascii(",")
    first = false
    writer.string(name)
    writer.ascii(":")
    writer.scalar(value)
  }
  writer.ascii("}")
}

/**
 * A ModelInferResponse, and the ModelStreamInferResponse around it, written by hand: each byte once, behind a length that is
 * known beforehand. Byte for byte what the general codec writes.
 */
import { noParameters } from "../Inference.ts"
import * as PlainParameters from "./PlainParameters.ts"
import * as ProtobufReader from "./ProtobufReader.ts"
import { delimitedLength, ProtobufWriter, textLength, varintLength } from "./ProtobufWriter.ts"
import * as RegionReference from "../RegionReference.ts"
import type { StreamResponse, WireResponse, WireTensor } from "../WireRequest.ts"

/** In bytes. */
export const length = ({ modelName, modelVersion, id, parameters, outputs }: WireResponse): number => {
  let sum = optionalLength(modelName) + optionalLength(modelVersion) + optionalLength(id)
  if (parameters !== noParameters) sum += PlainParameters.length(parameters)
  for (const output of outputs) sum += delimitedLength(outputLength(output)) + delimitedLength(output.bytes.length)
  return sum
}

/** Writes it from `position` on, and returns the position behind it. */
export const write = (response: WireResponse, bytes: Uint8Array, position: number): number => {
  const writer = new ProtobufWriter(bytes, position)
  writeResponse(writer, response)
  return writer.position
}

/** Of a ModelStreamInferResponse. */
export const streamLength = ({ error, response }: StreamResponse): number =>
  optionalLength(error) + delimitedLength(length(response))

export const writeStream = ({ error, response }: StreamResponse, bytes: Uint8Array, position: number): number => {
  const writer = new ProtobufWriter(bytes, position)
  writeOptional(writer, streamTags.error, error)
  writer.open(streamTags.response, length(response))
  writeResponse(writer, response)
  return writer.position
}

const writeResponse = (writer: ProtobufWriter, response: WireResponse): void => {
  const { modelName, modelVersion, id, parameters, outputs } = response
  writeOptional(writer, tags.modelName, modelName)
  writeOptional(writer, tags.modelVersion, modelVersion)
  writeOptional(writer, tags.id, id)
  if (parameters !== noParameters) PlainParameters.write(writer, tags.parameters, parameters)
  for (const output of outputs) {
    writer.open(tags.outputs, outputLength(output))
    writeOutput(writer, output)
  }
  for (const { bytes } of outputs) writer.bytes(tags.rawOutputContents, bytes)
}

const writeOutput = (writer: ProtobufWriter, { name, datatype, shape, region }: WireTensor): void => {
  writeOptional(writer, outputTags.name, name)
  writeOptional(writer, outputTags.datatype, datatype)
  if (shape.length > 0) {
    writer.open(outputTags.shape, shapeLength(shape))
    for (const extent of shape) writer.varint(extent)
  }
  if (region !== undefined) PlainParameters.write(writer, outputTags.parameters, RegionReference.parameters(region))
}

const outputLength = ({ name, datatype, shape, region }: WireTensor): number => {
  const extents = shape.length === 0 ? 0 : delimitedLength(shapeLength(shape))
  const parameters = region === undefined ? 0 : PlainParameters.length(RegionReference.parameters(region))
  return optionalLength(name) + optionalLength(datatype) + extents + parameters
}

const shapeLength = (shape: ReadonlyArray<number>): number => {
  let sum = 0
  for (const extent of shape) sum += varintLength(extent)
  return sum
}

/** An empty text is the default, and not written. */
const optionalLength = (text: string): number => (text === "" ? 0 : textLength(text))

const writeOptional = (writer: ProtobufWriter, tag: number, text: string): void => {
  if (text !== "") writer.text(tag, text)
}

const streamTags = { error: ProtobufReader.delimited(1), response: ProtobufReader.delimited(2) } as const

const tags = {
  modelName: ProtobufReader.delimited(1),
  modelVersion: ProtobufReader.delimited(2),
  id: ProtobufReader.delimited(3),
  parameters: ProtobufReader.delimited(4),
  outputs: ProtobufReader.delimited(5),
  rawOutputContents: ProtobufReader.delimited(6),
} as const

const outputTags = {
  name: ProtobufReader.delimited(1),
  datatype: ProtobufReader.delimited(2),
  shape: ProtobufReader.delimited(3),
  parameters: ProtobufReader.delimited(4),
} as const

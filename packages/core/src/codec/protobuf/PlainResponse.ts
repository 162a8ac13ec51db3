/**
 * Writes a ModelInferResponse, and the ModelStreamInferResponse around it, in one pass with precomputed lengths. The
 * bytes equal those of the general codec. Also reads responses with raw tensors, as servers send them; InferMessage.ts
 * reads all other forms.
 */
import { noParameters, type Parameter } from "../../request/Request.ts"
import * as PlainParameters from "./PlainParameters.ts"
import * as ProtobufReader from "./ProtobufReader.ts"
import { delimitedLength, optionalLength, ProtobufWriter, shapeLength } from "./ProtobufWriter.ts"
import * as RegionReference from "../../wire/RegionReference.ts"
import type { StreamResponse, WireResponse, WireTensor } from "../../wire/WireRequest.ts"

/** In bytes. */
export const length = ({ modelName, modelVersion, id, parameters, outputs }: WireResponse): number => {
  let sum = optionalLength(modelName) + optionalLength(modelVersion) + optionalLength(id)
  if (parameters !== noParameters) sum += PlainParameters.length(parameters)
  for (const output of outputs) sum += delimitedLength(outputLength(output)) + delimitedLength(output.bytes.length)
  return sum
}

/** Writes the response from `position` on, and returns the end position. */
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
  writer.optional(streamTags.error, error)
  writer.open(streamTags.response, length(response))
  writeResponse(writer, response)
  return writer.position
}

const writeResponse = (writer: ProtobufWriter, response: WireResponse): void => {
  const { modelName, modelVersion, id, parameters, outputs } = response
  writer.optional(tags.modelName, modelName)
  writer.optional(tags.modelVersion, modelVersion)
  writer.optional(tags.id, id)
  if (parameters !== noParameters) PlainParameters.write(writer, tags.parameters, parameters)
  for (const output of outputs) {
    writer.open(tags.outputs, outputLength(output))
    writeOutput(writer, output)
  }
  for (const { bytes } of outputs) writer.bytes(tags.rawOutputContents, bytes)
}

const writeOutput = (writer: ProtobufWriter, { name, datatype, shape, region }: WireTensor): void => {
  writer.optional(outputTags.name, name)
  writer.optional(outputTags.datatype, datatype)
  writer.shape(outputTags.shape, shape)
  if (region !== undefined) PlainParameters.write(writer, outputTags.parameters, RegionReference.parameters(region))
}

const outputLength = ({ name, datatype, shape, region }: WireTensor): number => {
  const parameters = region === undefined ? 0 : PlainParameters.length(RegionReference.parameters(region))
  return optionalLength(name) + optionalLength(datatype) + shapeLength(shape) + parameters
}

/** Reads the response of a ModelStreamInfer message without an error; undefined if it is not in its common form. */
export const readStreamed = (bytes: Uint8Array): WireResponse | undefined => {
  const reader = new ProtobufReader.ProtobufReader(bytes, 0, bytes.length)
  if (reader.tag() !== streamTags.response || reader.end() !== bytes.length || reader.failed) return undefined
  return read(bytes, reader.position, bytes.length)
}

/**
 * Reads the response from `start` to `end`; undefined if it is not in its common form. Its tensors are views on
 * `bytes`.
 */
export const read = (bytes: Uint8Array, start: number, end: number): WireResponse | undefined => {
  const reader = new ProtobufReader.ProtobufReader(bytes, start, end)
  const outputs: Array<Output> = []
  let modelName = ""
  let modelVersion = ""
  let id = ""
  let parameters: { [name: string]: Parameter } | undefined
  /** Outputs that have their raw contents. */
  let raw = 0
  while (reader.position < end) {
    const tag = reader.tag()
    const fieldEnd = reader.end()
    if (reader.failed) return undefined
    switch (tag) {
      case tags.modelName:
        modelName = reader.name(fieldEnd)
        break
      case tags.modelVersion:
        modelVersion = reader.name(fieldEnd)
        break
      case tags.id:
        id = reader.text(fieldEnd)
        break
      case tags.parameters: {
        const parameter = PlainParameters.read(reader, fieldEnd)
        if (parameter === undefined) return undefined
        parameters ??= {}
        parameters[parameter.name] = parameter.choice.value
        break
      }
      case tags.outputs: {
        const output = readOutput(reader, fieldEnd)
        if (output === undefined) return undefined
        outputs.push(output)
        break
      }
      case tags.rawOutputContents: {
        const output = outputs[raw++]
        if (output === undefined) return undefined
        output.bytes = reader.view(fieldEnd)
        break
      }
      default:
        return undefined
    }
    if (reader.failed) return undefined
  }
  if (reader.position !== end || raw !== outputs.length) return undefined
  return { modelName, modelVersion, id, parameters: parameters ?? noParameters, outputs }
}

interface Output {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  bytes: Uint8Array
}

const noBytes = new Uint8Array(0)

const readOutput = (reader: ProtobufReader.ProtobufReader, end: number): Output | undefined => {
  const shape: Array<number> = []
  let name = ""
  let datatype = ""
  while (reader.position < end) {
    const tag = reader.tag()
    const fieldEnd = reader.end(end)
    if (reader.failed) return undefined
    switch (tag) {
      case outputTags.name:
        name = reader.name(fieldEnd)
        break
      case outputTags.datatype:
        datatype = reader.name(fieldEnd)
        break
      case outputTags.shape:
        while (reader.position < fieldEnd) shape.push(reader.varint())
        break
      default:
        return undefined
    }
    if (reader.failed || reader.position !== fieldEnd) return undefined
  }
  return { name, datatype, shape, bytes: noBytes }
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

/**
 * Reads and writes a ModelInferRequest in its common form: names, datatypes, shapes and parameters, and tensors as raw
 * bytes or typed contents. This costs a fraction of a general codec. ProtobufCodec.ts decodes everything else
 * (parameters of tensors, unknown fields, malformed messages).
 */
import { noParameters, type Parameter } from "../../request/Request.ts"
import * as PlainContents from "./PlainContents.ts"
import * as PlainParameters from "./PlainParameters.ts"
import * as ProtobufReader from "./ProtobufReader.ts"
import { delimitedLength, optionalLength, ProtobufWriter, shapeLength } from "./ProtobufWriter.ts"
import type { RequestedOutput, WireRequest, WireTensor } from "../../wire/WireRequest.ts"

/**
 * Reads the request from `start` to `end`; undefined if it is not in its common form. Its tensors are views on `bytes`.
 */
export const read = (bytes: Uint8Array, start: number, end: number): WireRequest | undefined => {
  const reader = new ProtobufReader.ProtobufReader(bytes, start, end)
  const inputs: Array<Input> = []
  const outputs: Array<RequestedOutput> = []
  let modelName = ""
  let modelVersion = ""
  let id = ""
  let parameters: { [name: string]: Parameter } | undefined
  /** Inputs that have their raw contents. */
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
        const parameter = PlainParameters.readOfRequest(reader, fieldEnd)
        if (parameter === undefined) return undefined
        parameters ??= {}
        parameters[parameter.name] = parameter.choice.value
        break
      }
      case tags.inputs: {
        const input = readInput(reader, fieldEnd)
        if (input === undefined) return undefined
        inputs.push(input)
        break
      }
      case tags.outputs: {
        const name = readOutput(reader, fieldEnd)
        if (name === undefined) return undefined
        outputs.push({ name, binary: undefined })
        break
      }
      case tags.rawInputContents: {
        const input = inputs[raw++]
        if (input === undefined || input.bytes !== unsent) return undefined
        input.bytes = reader.view(fieldEnd)
        break
      }
      default:
        return undefined
    }
    if (reader.failed) return undefined
  }
  // Either all inputs have raw contents, or all have typed ones.
  if (reader.position !== end || (raw === 0 ? inputs.some(isUnsent) : raw !== inputs.length)) return undefined
  return { modelName, modelVersion, id, parameters: parameters ?? noParameters, inputs, outputs }
}

/** Bytes of a request as a client writes it: all of its tensors raw, of its outputs the names. */
export const length = ({ modelName, modelVersion, id, parameters, inputs, outputs }: WireRequest): number => {
  let sum = optionalLength(modelName) + optionalLength(modelVersion) + optionalLength(id)
  if (parameters !== noParameters) sum += PlainParameters.length(parameters)
  for (const input of inputs) sum += delimitedLength(inputLength(input)) + delimitedLength(input.bytes.length)
  for (const { name } of outputs) sum += delimitedLength(optionalLength(name))
  return sum
}

/** Writes the request from `position` on, and returns the end position. The bytes equal those of the general codec. */
export const write = (request: WireRequest, bytes: Uint8Array, position: number): number => {
  const { modelName, modelVersion, id, parameters, inputs, outputs } = request
  const writer = new ProtobufWriter(bytes, position)
  writer.optional(tags.modelName, modelName)
  writer.optional(tags.modelVersion, modelVersion)
  writer.optional(tags.id, id)
  if (parameters !== noParameters) PlainParameters.write(writer, tags.parameters, parameters)
  for (const input of inputs) {
    writer.open(tags.inputs, inputLength(input))
    writer.optional(inputTags.name, input.name)
    writer.optional(inputTags.datatype, input.datatype)
    writer.shape(inputTags.shape, input.shape)
  }
  for (const { name } of outputs) {
    writer.open(tags.outputs, optionalLength(name))
    writer.optional(outputTag, name)
  }
  for (const { bytes } of inputs) writer.bytes(tags.rawInputContents, bytes)
  return writer.position
}

const inputLength = ({ name, datatype, shape }: WireTensor): number =>
  optionalLength(name) + optionalLength(datatype) + shapeLength(shape)

interface Input {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  bytes: Uint8Array
}

/** Marks an input without contents. */
const unsent = new Uint8Array(0)

const isUnsent = ({ bytes }: Input): boolean => bytes === unsent

const readInput = (reader: ProtobufReader.ProtobufReader, end: number): Input | undefined => {
  const shape: Array<number> = []
  let name = ""
  let datatype = ""
  let bytes: Uint8Array | undefined = unsent
  while (reader.position < end) {
    const tag = reader.tag()
    const fieldEnd = reader.end(end)
    if (reader.failed) return undefined
    switch (tag) {
      case inputTags.name:
        name = reader.name(fieldEnd)
        break
      case inputTags.datatype:
        // Contents that came before it were read as something else.
        if (bytes !== unsent) return undefined
        datatype = reader.name(fieldEnd)
        break
      case inputTags.shape:
        while (reader.position < fieldEnd) shape.push(reader.varint())
        break
      case inputTags.contents:
        if (bytes !== unsent) return undefined
        bytes = PlainContents.read(reader, fieldEnd, datatype)
        if (bytes === undefined) return undefined
        break
      default:
        return undefined
    }
    if (reader.failed || reader.position !== fieldEnd) return undefined
  }
  return { name, datatype, shape, bytes }
}

const readOutput = (reader: ProtobufReader.ProtobufReader, end: number): string | undefined => {
  if (reader.position === end) return ""
  const tag = reader.tag()
  if (tag !== outputTag || reader.end(end) !== end || reader.failed) return undefined
  return reader.name(end)
}

const tags = {
  modelName: ProtobufReader.delimited(1),
  modelVersion: ProtobufReader.delimited(2),
  id: ProtobufReader.delimited(3),
  parameters: ProtobufReader.delimited(4),
  inputs: ProtobufReader.delimited(5),
  outputs: ProtobufReader.delimited(6),
  rawInputContents: ProtobufReader.delimited(7),
} as const

const outputTag = ProtobufReader.delimited(1)

const inputTags = {
  name: ProtobufReader.delimited(1),
  datatype: ProtobufReader.delimited(2),
  shape: ProtobufReader.delimited(3),
  contents: ProtobufReader.delimited(5),
} as const

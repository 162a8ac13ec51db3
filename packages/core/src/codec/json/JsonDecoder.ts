/**
 * Decodes the JSON of the v2 protocol: request and response documents. Tensors in binary form are only declared in the
 * document; BinaryExtension.ts extracts their bytes, and is the entry point for front ends and clients. Duplicate keys
 * are refused. JsonEncoder.ts encodes.
 */
import { Result } from "effect"
import { byteWidth, isDataType } from "../../tensor/DataType.ts"
import { InvalidRequest, type InferenceError } from "../../error/InferenceError.ts"
import type { Parameter, Parameters } from "../../request/Request.ts"
import { refuseDuplicate } from "./DistinctKeys.ts"
import { readElements, readInput } from "./JsonElements.ts"
import { hasJsonForm, noJsonForm } from "./JsonDataType.ts"
import {
  caught,
  elements,
  members,
  missing,
  maxElements,
  readString,
  readUnsigned,
  tooMany,
  wrongKind,
  wrongType,
} from "./JsonMembers.ts"
import { invalidType, readParameter } from "./JsonParameter.ts"
import { JsonReader } from "./JsonReader.ts"
import * as KnownParameters from "../../wire/KnownParameters.ts"
import * as RegionReference from "../../wire/RegionReference.ts"
import type { RequestedOutput } from "../../wire/WireRequest.ts"

/** A tensor of a document: its bytes, how many of them follow the document, or the region that they are in. */
export interface DocumentTensor {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
  readonly content: Uint8Array | number | RegionReference.RegionReference
}

export interface RequestDocument {
  readonly id: string
  readonly parameters: Parameters
  readonly inputs: ReadonlyArray<DocumentTensor>
  readonly outputs: ReadonlyArray<RequestedOutput>
  /** Whether outputs that do not say so themselves are sent as binary data. */
  readonly binaryOutputs: boolean
}

export interface ResponseDocument {
  readonly modelName: string
  readonly modelVersion: string
  readonly id: string
  readonly parameters: Parameters
  readonly outputs: ReadonlyArray<DocumentTensor>
}

/** The values of a document that differ from request to request, in its order. */
export interface VaryingValues {
  readonly values: Array<VaryingValue>
  /** Whether the elements of all inputs were read. */
  isWhole: boolean
}

export interface VaryingValue {
  /** The id, or the elements of the input at this position. */
  readonly target: "id" | number
  readonly from: number
  readonly to: number
}

/** Reads the document of a request; `bytes` end with it. What varies in it is noted, if wanted. */
export const readRequest = (
  bytes: Uint8Array,
  varying?: VaryingValues,
): Result.Result<RequestDocument, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(bytes, "request")
    const inputs: Array<DocumentTensor> = []
    const outputs: Array<RequestedOutput> = []
    let id = ""
    let parameters = new Map<string, Parameter>()
    let found = false
    members(reader, ["inputs", "id", "parameters", "outputs"], (key) => {
      switch (key) {
        case "id": {
          const from = reader.position
          id = readString(reader, "id")
          varying?.values.push({ target: "id", from, to: reader.position })
          return
        }
        case "parameters":
          parameters = readParameters(reader, refuseStructured)
          checkKnown(parameters)
          return
        case "inputs":
          found = true
          elements(reader, "inputs", () => inputs.push(readTensor(reader, "input", varying, inputs.length)))
          return
        case "outputs":
          elements(reader, "outputs", () => outputs.push(readOutput(reader)))
          return
      }
    })
    reader.end()
    if (!found) missing("inputs")
    const binaryOutputs = flag(parameters, "binary_data_output") ?? false
    parameters.delete("binary_data_output")
    return { id, parameters: Object.fromEntries(parameters), inputs, outputs, binaryOutputs }
  })

/** Reads the document of a response; `bytes` end with it. Parameters that are no scalars are left out. */
export const readResponse = (bytes: Uint8Array): Result.Result<ResponseDocument, InferenceError> =>
  caught(() => {
    const reader = new JsonReader(bytes, "response")
    const outputs: Array<DocumentTensor> = []
    let [modelName, modelVersion, id] = ["", "", ""]
    let parameters: Parameters = {}
    members(reader, ["outputs", "model_name", "model_version", "id", "parameters"], (key) => {
      // Some servers omit unset members, others set them to null.
      if (reader.kind() === "null") return reader.null()
      switch (key) {
        case "model_name":
          modelName = readString(reader, key)
          return
        case "model_version":
          modelVersion = readString(reader, key)
          return
        case "id":
          id = readString(reader, key)
          return
        case "parameters":
          parameters = Object.fromEntries(readParameters(reader, ignored))
          return
        case "outputs":
          elements(reader, "outputs", () => outputs.push(readTensor(reader, "output")))
          return
      }
    })
    reader.end()
    return { modelName, modelVersion, id, parameters, outputs }
  })

const sharedMemory = `'${RegionReference.parameterNames.name}' in 'parameters'`

const readTensor = (
  reader: JsonReader,
  kind: "input" | "output",
  varying?: VaryingValues,
  position = 0,
): DocumentTensor => {
  let name: string | undefined
  let datatype: string | undefined
  let shape: ReadonlyArray<number> | undefined
  let parameters = new Map<string, Parameter>()
  let data: number | undefined
  let content: Uint8Array | undefined
  members(reader, ["name", "datatype", "shape", "parameters", "data"], (key) => {
    switch (key) {
      case "name":
        name = readString(reader, "name")
        return
      case "datatype":
        datatype = readString(reader, "datatype")
        return
      case "shape":
        shape = readShape(reader)
        return
      case "parameters":
        parameters = readParameters(reader, kind === "input" ? refuseKnown : ignored)
        return
      case "data":
        data = reader.position
        // Clients write it last, so one pass is the rule.
        if (name !== undefined && datatype !== undefined && shape !== undefined) {
          content = readData(reader, { kind, name, datatype, shape })
          varying?.values.push({ target: position, from: data, to: reader.position })
        } else {
          reader.skip(true)
          if (varying !== undefined) varying.isWhole = false
        }
    }
  })
  if (name === undefined) return missing("name")
  if (datatype === undefined) return missing("datatype")
  if (shape === undefined) return missing("shape")
  const size = unsigned(parameters, "binary_data_size")
  const region = readRegion(parameters)
  const sources = [
    ...(data === undefined ? [] : ["'data'"]),
    ...(size === undefined ? [] : ["'binary_data_size' in 'parameters'"]),
    ...(region === undefined ? [] : [sharedMemory]),
  ]
  if (sources.length !== 1) {
    const subject = kind === "input" ? "Input" : "Output"
    const rule = `${subject} must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', ${sharedMemory}`
    const found = sources.length === 0 ? "no field is set" : `${sources.join(", ")} are set`
    throw new InvalidRequest({ message: `${rule}. But ${found}` })
  }
  if (data !== undefined && content === undefined) {
    const behind = reader.position
    reader.position = data
    content = readData(reader, { kind, name, datatype, shape })
    reader.position = behind
  }
  return { name, datatype, shape, content: content ?? region ?? Number(size) }
}

const readRegion = (parameters: Map<string, Parameter>): RegionReference.RegionReference | undefined => {
  if (parameters.size === 0) return undefined
  const { parameterNames } = RegionReference
  const name = parameters.get(parameterNames.name)
  if (name !== undefined && typeof name !== "string") {
    throw wrongType(parameterNames.name, "string")
  }
  const byteSize = unsigned(parameters, parameterNames.byteSize)
  return Result.getOrThrow(RegionReference.make(name, byteSize, unsigned(parameters, parameterNames.offset)))
}

const noBytes = new Uint8Array()

interface TensorHeader {
  readonly kind: "input" | "output"
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
}

const readData = (reader: JsonReader, { kind, name, datatype, shape }: TensorHeader): Uint8Array => {
  if (reader.kind() !== "array") wrongKind(reader, "data", "array")
  let count = 1
  for (const extent of shape) count *= extent
  // Validation has the words for a datatype that does not exist and for a shape beyond all counting.
  if (isDataType(datatype)) {
    if (!hasJsonForm(datatype)) throw noJsonForm(kind, name, datatype)
    const read = kind === "input" ? readInput : readElements
    if (count * (byteWidth(datatype) ?? 1) < 2 ** 63) return read(reader, datatype, count, name)
  }
  reader.skip(true)
  return noBytes
}

const readOutput = (reader: JsonReader): RequestedOutput => {
  let name: string | undefined
  let parameters = new Map<string, Parameter>()
  members(reader, ["name", "parameters"], (key) => {
    if (key === "name") name = readString(reader, "name")
    else parameters = readParameters(reader, refuseKnown)
  })
  if (name === undefined) return missing("name")
  const binary = flag(parameters, "binary_data")
  const classification = parameters.get("classification")
  const region = readRegion(parameters)
  if (region !== undefined) {
    if (classification !== undefined) throw RegionReference.conflict("classification")
    // Clients say that an output in a region is not binary.
    if (binary === true) throw RegionReference.conflict("binary_data")
    return { name, binary, region }
  }
  if (classification === undefined) return { name, binary }
  if (typeof classification === "bigint") return { name, binary, classification: Number(classification) }
  throw wrongType("classification", "unsigned-integer")
}

const readShape = (reader: JsonReader): ReadonlyArray<number> => {
  const shape: Array<number> = []
  elements(reader, "shape", () => {
    reader.peek()
    const start = reader.position
    const extent = readUnsigned(reader, "shape")
    if (extent > Number.MAX_SAFE_INTEGER) {
      const text = reader.text(start, reader.position)
      const limit = `at most ${Number.MAX_SAFE_INTEGER} is possible`
      throw new InvalidRequest({ message: `a tensor has the extent ${text} in its shape, ${limit}` })
    }
    shape.push(extent)
  })
  return shape
}

/** Calls `structured` for each parameter that is an object, an array or null, and omits it from the result. */
const readParameters = (reader: JsonReader, structured: (name: string) => void): Map<string, Parameter> => {
  const parameters = new Map<string, Parameter>()
  if (structured === ignored && reader.kind() === "null") {
    reader.null()
    return parameters
  }
  if (reader.kind() !== "object") wrongKind(reader, "parameters", "object")
  let omitted: Set<string> | undefined
  reader.object((name) => {
    if (parameters.has(name) || omitted?.has(name) === true) refuseDuplicate(reader, name)
    const value = readParameter(reader)
    if (value !== undefined) parameters.set(name, value)
    else {
      structured(name)
      omitted = (omitted ?? new Set()).add(name)
    }
    if (parameters.size + (omitted?.size ?? 0) > maxElements) throw tooMany("parameters")
  })
  return parameters
}

const ignored = () => {}

const refuseStructured = (name: string): never => {
  throw invalidType(name)
}

/** Of a tensor, only those count that the protocol knows. */
const refuseKnown = (name: string): void => {
  const expected = tensorParameters.get(name)
  if (expected !== undefined) throw wrongType(name, expected)
}

const tensorParameters: ReadonlyMap<string, string> = new Map([
  ["binary_data_size", "unsigned-integer"],
  ["binary_data", "boolean"],
  ["classification", "unsigned-integer"],
  [RegionReference.parameterNames.name, "string"],
  [RegionReference.parameterNames.byteSize, "unsigned-integer"],
  [RegionReference.parameterNames.offset, "unsigned-integer"],
])

const unsigned = (parameters: Map<string, Parameter>, name: string): bigint | undefined => {
  const value = parameters.get(name)
  if (value === undefined || (typeof value === "bigint" && value >= 0n)) return value
  throw wrongType(name, "unsigned-integer")
}

const checkKnown = (parameters: ReadonlyMap<string, Parameter>): void => {
  for (const [name, value] of parameters) {
    const problem = KnownParameters.jsonProblem(name, value, wrongType)
    if (problem !== undefined) throw problem
  }
}

const flag = (parameters: Map<string, Parameter>, name: string): boolean | undefined => {
  const value = parameters.get(name)
  if (value === undefined || typeof value === "boolean") return value
  throw wrongType(name, "boolean")
}

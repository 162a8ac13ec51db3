/**
 * A sample of a model as one JSON object, with a member for each input and declared parameter, or for each output.
 * Values are as in JsonField.ts. Single samples only; batches use the protocol's JSON.
 */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError, InvalidRequest } from "../error/InferenceError.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import { namesProblem } from "../model/SampleCodec.ts"
import type { Parameter } from "../request/Request.ts"
import type { WireRequest, WireResponse, WireTensor } from "../wire/WireRequest.ts"
import { isDataType } from "../tensor/DataType.ts"
import type { TensorSpec } from "../tensor/TensorSpec.ts"
import { TextTensor } from "../tensor/TextTensor.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"
import { DistinctKeys } from "../codec/json/DistinctKeys.ts"
import { JsonReader } from "../codec/json/JsonReader.ts"
import * as JsonField from "./JsonField.ts"
import { errorMessage } from "../error/ErrorMessage.ts"

/** The definition of any model that `Model.Service` declares. */
export type AnyDefinition = Pick<
  Definition<Fields, Fields>,
  "name" | "version" | "inputs" | "outputs" | "parameters" | "maxBatchSize" | "signature"
>

export interface JsonSample {
  readonly definition: AnyDefinition
  readonly inputs: ReadonlyArray<JsonField.JsonField>
  readonly outputs: ReadonlyArray<JsonField.JsonField>
  /** Decodes a sample to a request. */
  readonly decode: (body: Uint8Array) => Result.Result<WireRequest, InferenceError>
  /** A response as JSON text. */
  readonly encode: (response: WireResponse) => Result.Result<string, InferenceError>
}

/** @throws TypeError if an input or output has no JSON form */
export const make = (definition: AnyDefinition): JsonSample => {
  const { name, version, signature, maxBatchSize, parameters = {} } = definition
  const inputs = columns(definition, signature.inputs, definition.inputs)
  const outputs = columns(definition, signature.outputs, definition.outputs)
  const declared = Object.keys(parameters).filter((name) => !signature.inputs.some((spec) => spec.name === name))
  const isBatched = maxBatchSize > 0

  const refuse = (field: string, message: string) =>
    new InvalidRequest({ message: `input '${field}' of model '${name}': ${message}` })

  const decode: JsonSample["decode"] = (body) => {
    const parsed = parse(body)
    if (Result.isFailure(parsed)) return Result.fail(parsed.failure)
    const members = { ...parsed.success }
    const given: Record<string, Parameter> = {}
    for (const parameter of declared) {
      if (!Object.hasOwn(members, parameter)) continue
      const value = toParameter(members[parameter])
      if (value === undefined) return Result.fail(refuse(parameter, "a parameter is a text, a number or a boolean"))
      given[parameter] = value
      delete members[parameter]
    }
    const problem = namesProblem(signature.inputs, members)
    if (problem !== undefined) return Result.fail(refuse(problem.field, problem.message))
    const tensors: Array<WireTensor> = []
    for (const { spec, decode } of inputs) {
      if (!Object.hasOwn(members, spec.name)) continue
      const tensor = decode(members[spec.name])
      if (Result.isFailure(tensor)) return Result.fail(refuse(spec.name, tensor.failure))
      const { datatype, shape, bytes } = tensor.success
      tensors.push({ name: spec.name, datatype, shape: isBatched ? [1, ...shape] : shape, bytes })
    }
    return Result.succeed({
      modelName: name,
      modelVersion: version,
      id: "",
      parameters: given,
      inputs: tensors,
      outputs: [],
    })
  }

  const encode: JsonSample["encode"] = (response) => {
    const sample: Record<string, unknown> = {}
    for (const { spec, encode } of outputs) {
      const wire = response.outputs.find((output) => output.name === spec.name)
      if (wire === undefined || !isDataType(wire.datatype)) continue
      const shape = isBatched ? wire.shape.slice(1) : wire.shape
      const { text } = wire
      const json = encode(
        text === undefined ? new TypedTensor(wire.datatype, shape, wire.bytes) : new TextTensor(shape, text),
      )
      if (Result.isFailure(json)) {
        const message = `output '${spec.name}' of model '${name}': ${json.failure}`
        return Result.fail(new ExecutionFailed({ message }))
      }
      sample[spec.name] = json.success
    }
    return Result.succeed(JSON.stringify(sample))
  }

  return { definition, inputs, outputs, decode, encode }
}

const columns = ({ name }: AnyDefinition, specs: ReadonlyArray<TensorSpec>, fields: Fields) =>
  specs.map((spec) => {
    const field = fields[spec.name]
    if (field === undefined) throw new TypeError(`No field for ${spec.name}. This is a bug.`)
    try {
      return JsonField.make(spec, field)
    } catch (error) {
      throw new TypeError(`Model "${name}": ${errorMessage(error)}.`, {
        cause: error,
      })
    }
  })

const parse = (body: Uint8Array): Result.Result<{ readonly [name: string]: unknown }, InvalidRequest> => {
  const refuse = (reason: string) => Result.fail(new InvalidRequest({ message: `expected a JSON object: ${reason}` }))
  try {
    const json: unknown = JSON.parse(decoder.decode(body))
    if (json === null || Array.isArray(json)) return refuse(json === null ? "got null" : "got an array")
    if (typeof json !== "object") return refuse(`got a ${typeof json}`)
    checkKeys(body)
    return Result.succeed({ ...json })
  } catch (error) {
    return refuse(errorMessage(error))
  }
}

/** As strict as JsonReader.ts about marks of byte order. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Refuses duplicate keys, of which JSON.parse takes the last one. */
const checkKeys = (body: Uint8Array): void => {
  const reader = new JsonReader(body, "request")
  const keys = new DistinctKeys()
  reader.peek()
  reader.object((key) => {
    keys.add(reader, key)
    reader.skip()
  })
}

/** As the protocol's JSON has them: a number without a fraction is an integer. */
const toParameter = (json: unknown): Parameter | undefined => {
  if (typeof json === "number") return Number.isSafeInteger(json) ? BigInt(json) : json
  return typeof json === "string" || typeof json === "boolean" ? json : undefined
}

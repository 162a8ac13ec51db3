/**
 * Example requests of a model for OpenAPI: one row of zeros and short texts, without the optional inputs. Of a model
 * with sequences, a sequence of one request.
 */
import { Result } from "effect"
import { encodeJsonRequest } from "../codec/json/BinaryExtension.ts"
import * as GenerateMessage from "../codec/generate/GenerateMessage.ts"
import type { ModelDescription } from "../running/ModelDescription.ts"
import * as SyntheticTensor from "../synthetic/SyntheticTensor.ts"
import { elementCount } from "../tensor/TypedTensor.ts"
import type { WireRequest } from "../wire/WireRequest.ts"

/** Elements of an example; a larger one would hide the rest of the document. */
const maxElements = 64

export interface RequestExamples {
  readonly infer: unknown
  readonly generate: unknown
}

/** Both undefined for a model with large inputs, and for one that requires parameters. */
export const make = (description: ModelDescription): RequestExamples => {
  const { name, version, signature, maxBatchSize, parameters, requiredSequence } = description
  const specs = signature.inputs.filter(({ optional }) => !optional)
  const shapes = specs.map(({ dims }) => SyntheticTensor.shape(dims, {}))
  const count = shapes.reduce((sum, shape) => sum + elementCount(shape), 0)
  if (count > maxElements || Object.keys(parameters).length > 0) return { infer: undefined, generate: undefined }
  const random = SyntheticTensor.random()
  const text = new TextEncoder().encode("text")
  const wire: WireRequest = {
    modelName: name,
    modelVersion: version,
    id: "",
    parameters: requiredSequence === undefined ? {} : { sequence_id: 1n, sequence_start: true, sequence_end: true },
    outputs: [],
    inputs: specs.map((spec, index) => {
      const known = { ...spec, example: spec.example ?? (() => text) }
      const { datatype, shape, bytes } = SyntheticTensor.tensor(known, shapes[index] ?? [], "zeros", random)
      return { name: spec.name, datatype, shape: maxBatchSize > 0 ? [1, ...shape] : shape, bytes }
    }),
  }
  return { infer: parsed(encodeJsonRequest(wire)), generate: parsed(GenerateMessage.encode(wire)) }
}

const parsed = (body: Result.Result<Uint8Array, unknown>): unknown =>
  Result.isFailure(body) ? undefined : JSON.parse(new TextDecoder().decode(body.success))

/** Decodes the responses of a model for typed callers. TypedRequests.ts encodes the requests. */
import { Result } from "effect"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import { named, severalRows, withBatch, withoutBatch } from "../model/BatchedTensors.ts"
import type { CallError, Declared, ResponseParameters } from "../model/Declared.ts"
import type { Batched, Definition, Sample } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as ParameterFields from "../model/ParameterFields.ts"
import * as SampleCodec from "../model/SampleCodec.ts"
import type { Response } from "../request/Request.ts"
import type { Answer } from "./Inference.ts"

export type Decode<A> = (response: Response) => Result.Result<A, InferenceError>

export interface TypedResponses<O extends Fields, P extends Declared> {
  readonly sample: Decode<Sample<O>>
  readonly batch: Decode<Batched<O>>
  /** Adds the parameters of the response to what `decode` returns. */
  readonly withParameters: <A>(decode: Decode<A>) => Decode<Answer<A, P>>
  /** Returns the error that the model declares in place of the error that stands for it. */
  readonly failure: (failure: InferenceError) => CallError<P>
}

export const make = <I extends Fields, O extends Fields, P extends Declared>(
  definition: Definition<I, O, P>,
): TypedResponses<O, P> => {
  const { name, signature } = definition
  const outputs = SampleCodec.make(definition.outputs, signature.outputs)
  const parameters = definition.responseParameters && ParameterFields.make(definition.responseParameters)
  const batching = definition.maxBatchSize > 0

  const wrong = (kind: "output" | "response parameter", { field, message }: SampleCodec.SampleError) =>
    Result.fail(new ExecutionFailed({ message: `${kind} '${field}' of model '${name}': ${message}` }))

  return {
    sample: (response) => {
      const several = batching
        ? response.outputs.findIndex((tensor) => tensor !== undefined && tensor.shape[0] !== 1)
        : -1
      if (several >= 0) {
        const field = signature.outputs[several]?.name ?? ""
        return wrong("output", { field, message: severalRows(response.outputs[several]?.shape[0]) })
      }
      const decoded = outputs.decode(
        batching ? response.outputs.map((tensor) => tensor && withoutBatch(tensor)) : response.outputs,
      )
      if (Result.isFailure(decoded)) return wrong("output", decoded.failure)
      // The codec has put exactly the fields of O into it, each decoded by its own Schema.
      return Result.succeed(decoded.success as Sample<O>)
    },
    batch: (response) => {
      const tensors = batching ? response.outputs : response.outputs.map((tensor) => tensor && withBatch(tensor))
      return Result.succeed(named(signature.outputs, tensors) as Batched<O>)
    },
    withParameters: (decode) => (response) =>
      Result.flatMap(decode(response), (outputs) => {
        const decoded = parameters?.decode(response.parameters) ?? Result.succeed(response.parameters)
        if (Result.isFailure(decoded)) return wrong("response parameter", decoded.failure)
        // Decoded by the Schemas of P.
        return Result.succeed({ outputs, parameters: decoded.success as ResponseParameters<P> })
      }),
    // An error that is not of `Errors` is one of the classes of P.
    failure: (failure) => (definition.errors?.decode(failure) ?? failure) as CallError<P>,
  }
}

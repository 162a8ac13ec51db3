/**
 * Calls of models by name, for code that learns at run time which model to call. Each call is validated when it is
 * made, by the rules and with the error texts of the wire. Code that knows its model calls it by its class.
 */
import { Clock, Duration, Effect, type Fiber, Result, Stream } from "effect"
import { severalRows, withBatch, withoutBatch } from "../model/BatchedTensors.ts"
import { callableBy, inheritCaller, callerOf } from "./Caller.ts"
import type { Answer, CallOptions } from "./Inference.ts"
import { ExecutionFailed, type InferenceError, InvalidRequest } from "../error/InferenceError.ts"
import { notReady } from "../error/Refusal.ts"
import { noParameters, type Response } from "../request/Request.ts"
import { wrongParameter } from "../model/ParameterFields.ts"
import * as QueuedCall from "../model/QueuedCall.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { type CallableModel, decodedStream, submitSingle } from "../running/CallableModel.ts"
import { plain } from "../tensor/TextTensor.ts"
import type { AnyTensor, TypedTensor } from "../tensor/TypedTensor.ts"
import { type Validated, validate } from "../wire/Validation.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

export interface NamedTensors {
  readonly [name: string]: TypedTensor
}

/** Outputs by name. */
export interface NamedAnswers {
  readonly [name: string]: AnyTensor
}

export type NamedCallOptions = CallOptions & {
  /** Version of the model. Default: the highest. */
  readonly version?: string | number
  /** Names of the requested outputs. Default: all. */
  readonly outputs?: ReadonlyArray<string>
}

/** Calls of models whose responses are given as `A`, and failures as InferenceError. */
interface Calls<A> {
  /** One sample in and out, its tensors without a batch dimension, whether the model batches or not. */
  readonly infer: (model: string, sample: NamedTensors, options?: NamedCallOptions) => Effect.Effect<A, InferenceError>
  /** Streams the responses of one sample: any number from a decoupled model, one from any other. */
  readonly stream: (model: string, sample: NamedTensors, options?: NamedCallOptions) => Stream.Stream<A, InferenceError>
  /** Streams the responses of one request of several samples along axis 0. A response has any number of rows. */
  readonly streamBatch: (
    model: string,
    batch: NamedTensors,
    options?: NamedCallOptions,
  ) => Stream.Stream<A, InferenceError>
  /** Several samples, along axis 0; only one if the model does not batch. */
  readonly inferBatch: (
    model: string,
    batch: NamedTensors,
    options?: NamedCallOptions,
  ) => Effect.Effect<A, InferenceError>
}

export interface NamedCalls extends Calls<NamedAnswers> {
  /** The same calls with the parameters of their responses: integers are bigint, doubles number. */
  readonly withParameters: Calls<Answer<NamedAnswers>>
  /** Whether the model would execute a request now; false if there is no such model. */
  readonly isReady: (model: string, version?: string | number) => boolean
}

/** Conversion between tensors of the caller and tensors of the model. */
interface Form {
  readonly input: (model: RunningModel, tensor: TypedTensor) => TypedTensor
  readonly output: (model: RunningModel, tensor: TypedTensor) => TypedTensor
  /** Describes the problem with an output; undefined if it is valid. */
  readonly outputProblem: (model: RunningModel, tensor: TypedTensor) => string | undefined
  /** Describes the problem with the inputs; undefined if they are valid. */
  readonly problem: (model: RunningModel, tensors: NamedTensors) => string | undefined
}

const samples: Form = {
  input: ({ description: { maxBatchSize } }, tensor) => (maxBatchSize > 0 ? withBatch(tensor) : tensor),
  output: ({ description: { maxBatchSize } }, tensor) => (maxBatchSize > 0 ? withoutBatch(tensor) : tensor),
  outputProblem: ({ description: { maxBatchSize } }, { shape }) =>
    maxBatchSize > 0 && shape[0] !== 1 ? severalRows(shape[0]) : undefined,
  problem: () => undefined,
}

const batches: Form = {
  input: ({ description: { maxBatchSize } }, tensor) => (maxBatchSize > 0 ? tensor : withoutBatch(tensor)),
  output: ({ description: { maxBatchSize } }, tensor) => (maxBatchSize > 0 ? tensor : withBatch(tensor)),
  outputProblem: () => undefined,
  problem: ({ description: { name, maxBatchSize } }, tensors) => {
    if (maxBatchSize > 0) return undefined
    const rows = Object.values(tensors).find(({ shape }) => shape[0] !== 1)?.shape[0]
    return rows === undefined ? undefined : `inference request batch-size must be <= 1 for '${name}', got ${rows}`
  },
}

/** A call that has passed validation. */
interface PreparedCall {
  readonly model: RunningModel
  readonly callable: CallableModel
  readonly validated: Validated
}

/** Converts a response for the caller. */
type Decode<A> = (form: Form, call: PreparedCall, response: Response) => Result.Result<A, InferenceError>

export const make = (
  find: (name: string, version: string) => Result.Result<RunningModel, InferenceError>,
): NamedCalls => {
  const prepare = (
    form: Form,
    name: string,
    tensors: NamedTensors,
    options: NamedCallOptions,
    fiber: Fiber.Fiber<unknown, unknown>,
  ): Result.Result<PreparedCall, InferenceError> => {
    const caller = callerOf(fiber)
    const { version = "", outputs = [], id = caller?.id ?? "", parameters = noParameters, timeout } = options
    const encoded = QueuedCall.parameters(parameters, options)
    if (Result.isFailure(encoded)) return Result.fail(wrongParameter(name, { id }, encoded.failure))
    const found = find(name, String(version))
    if (Result.isFailure(found)) return Result.fail(found.failure)
    const model = found.success
    if (!model.life.isReady()) return Result.fail(notReady(model.description))
    const problem = form.problem(model, tensors)
    if (problem !== undefined) return Result.fail(new InvalidRequest({ message: problem }))
    const now = MonotonicTime.millis(fiber.getRef(Clock.Clock))
    const wire = {
      modelName: name,
      modelVersion: model.description.version,
      id,
      parameters: encoded.success,
      inputs: Object.entries(tensors).map(([name, given]) => {
        const { datatype, shape, bytes } = form.input(model, given)
        return { name, datatype, shape, bytes }
      }),
      outputs: outputs.map((name) => ({ name, binary: undefined })),
    }
    const deadline = timeout === undefined ? undefined : now + Duration.toMillis(timeout)
    return Result.map(validate(model.description, wire, deadline), (validated) => ({
      model,
      callable: callableBy(caller, model),
      validated: { ...validated, request: inheritCaller(validated.request, caller) },
    }))
  }

  const outputsOf: Decode<NamedAnswers> = (form, { model, validated }, response) => {
    const tensors: Record<string, AnyTensor> = {}
    for (const { position } of validated.outputs) {
      const spec = model.description.signature.outputs[position]
      const tensor = response.outputs[position]
      // The tensor has one datatype, which the type system cannot know.
      if (spec === undefined || tensor === undefined) continue
      const problem = form.outputProblem(model, tensor)
      if (problem !== undefined) {
        const message = `output '${spec.name}' of model '${model.description.name}': ${problem}`
        return Result.fail(new ExecutionFailed({ message }))
      }
      tensors[spec.name] = plain(form.output(model, tensor)) as AnyTensor
    }
    return Result.succeed(tensors)
  }

  const call =
    <A>(form: Form, decode: Decode<A>): Calls<A>["infer"] =>
    (name, tensors, options = {}) =>
      Effect.withFiber((fiber) => {
        const prepared = prepare(form, name, tensors, options, fiber)
        if (Result.isFailure(prepared)) return Effect.fail(prepared.failure)
        const { callable, validated } = prepared.success
        return Effect.callback((resume) =>
          Effect.sync(
            submitSingle(callable, validated.request, (outcome) =>
              resume(
                Effect.fromResult(Result.flatMap(outcome, (response) => decode(form, prepared.success, response))),
              ),
            ),
          ),
        )
      })

  const streaming =
    <A>(form: Form, decode: Decode<A>): Calls<A>["stream"] =>
    (name, tensors, options = {}) =>
      Stream.unwrap(
        Effect.withFiber((fiber) =>
          Effect.map(Effect.fromResult(prepare(form, name, tensors, options, fiber)), (call) =>
            decodedStream(call.callable, call.validated.request, {
              decode: (response) => decode(form, call, response),
              failure: (error) => error,
            }),
          ),
        ),
      )

  const calls = <A>(decode: Decode<A>): Calls<A> => ({
    infer: call(samples, decode),
    inferBatch: call(batches, decode),
    stream: streaming(samples, decode),
    streamBatch: streaming(batches, decode),
  })

  return {
    ...calls(outputsOf),
    withParameters: calls((form, call, response) =>
      Result.map(outputsOf(form, call, response), (outputs) => ({ outputs, parameters: response.parameters })),
    ),
    isReady: (name, version = "") => {
      const found = find(name, String(version))
      return Result.isSuccess(found) && found.success.life.isReady()
    },
  }
}

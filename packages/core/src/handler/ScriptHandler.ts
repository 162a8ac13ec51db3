/**
 * A model from a script: functions of requests with tensors by name, for models that are declared by a configuration.
 * ScriptOutputs.ts checks what they return. RequestsHandler.ts and StreamHandler.ts are for models in code.
 */
import { Cause, type Context, Effect, Exit, type Layer, Result, Stream } from "effect"
import type { HandlerEnvironment } from "../call/Caller.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import { fromEffect } from "../instance/Instance.ts"
import { named } from "../model/BatchedTensors.ts"
import type { Definition } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import * as ScriptOutputs from "../model/ScriptOutputs.ts"
import type { WarmUpFailed } from "../provide/WarmUpFailed.ts"
import { noParameters, type Request, type Response } from "../request/Request.ts"
import type { SequencePosition } from "../request/SequencePosition.ts"
import * as SequenceEndings from "../sequence/SequenceEndings.ts"
import type { OnSequenceEnd } from "../sequence/SequenceEndings.ts"
import * as Reshape from "../tensor/Reshape.ts"
import type { Signature } from "../tensor/TensorSpec.ts"
import type { AnyTensor } from "../tensor/TypedTensor.ts"
import * as BatchCall from "./BatchCall.ts"
import * as Handler from "./Handler.ts"
import type { HandledRequest } from "./RequestContext.ts"
import { wrongLength } from "./RequestsHandler.ts"
import { RequestScope } from "./RequestScope.ts"
import { last, responses } from "./StreamHandler.ts"
import * as UserCode from "./UserCode.ts"

/** Inputs by name, without omitted ones. Axis 0 is the rows of the request if the model batches. */
export interface ScriptRequest extends HandledRequest {
  readonly inputs: { readonly [name: string]: AnyTensor }
  /** The place of the request in its sequence; undefined for a model without sequences. */
  readonly sequence: ScriptSequence | undefined
}

export type ScriptSequence = Pick<SequencePosition, "id" | "isStart" | "isEnd" | "isReady">

/**
 * Returned in place of outputs, or yielded as the last response of a stream: the request is executed again with a later
 * batch. Only for a model with `iterative_sequence`.
 */
export const reschedule: unique symbol = Symbol.for("nereid.reschedule")

/** Returns for each request its outputs by name, or an error. */
export type BatchScript = (requests: ReadonlyArray<ScriptRequest>) => PromiseLike<ReadonlyArray<unknown>>

/** Returns any number of responses to one request: outputs by name. */
export type StreamScript = (request: ScriptRequest) => AsyncIterable<unknown>

/** The code of an instance. */
export interface Scripted<Execute> {
  readonly execute: Execute
  /** Called at the end of each sequence of which the instance has executed a request. */
  readonly onSequenceEnd: OnSequenceEnd | undefined
}

type ScriptModel = ModelClass<unknown, string, Fields, Fields>

type ScriptDefinition = Definition<Fields, Fields>

/** A script that answers each request of a batch once; `inner` is the model's signature in the shapes of the script. */
export const batches = <E, R>(
  model: ScriptModel,
  inner: Signature,
  make: Effect.Effect<Scripted<BatchScript>, E, R>,
  options: Handler.HandlerOptions,
): Layer.Layer<unknown, E | WarmUpFailed, Handler.Needs<R, never, Handler.HandlerOptions>> =>
  Handler.instances(
    model,
    make,
    options,
    ({ execute, onSequenceEnd }, context: Context.Context<never>, handling) => {
      const { definition } = model
      const shapes = shapesOf(definition, inner)
      const collect = collector(definition, shapes, handling)
      const outcome = (answer: unknown, { rows }: HandledRequest): Result.Result<Outputs, InferenceError> =>
        answer instanceof Error ? Result.fail(Handler.requestError(definition, answer)) : collect(answer, rows)
      return BatchCall.execute<ReadonlyArray<unknown>, never, never, undefined>(definition, context, handling, {
        begin: (batch, scope, fork) => {
          if (onSequenceEnd !== undefined) SequenceEndings.watch(batch.requests, onSequenceEnd)
          const requests = scope.requests.map((request, index) => withInputs(shapes, request, batch.requests[index]))
          return UserCode.call(execute, requests, scope, fork)
        },
        complete: (batch, scope, answers: unknown) => {
          if (!Array.isArray(answers) || answers.length !== batch.requests.length) {
            return Result.fail(wrongLength(definition.name, answers, batch.requests.length))
          }
          const outcomes = scope.requests.map((request, index) =>
            answers[index] === reschedule
              ? rescheduled
              : Result.map(outcome(answers[index], request), (outputs): Response => {
                  return { outputs, parameters: request.responseParameters() }
                }),
          )
          return Result.succeed(Handler.executionResult(outcomes))
        },
      })
    },
    { granularity: "requests" },
  )

/** A script that answers each request by any number of responses; `inner` as that of `batches`. */
export const streams = <E, R>(
  model: ScriptModel,
  inner: Signature,
  make: Effect.Effect<Scripted<StreamScript>, E, R>,
  options: Handler.HandlerOptions,
): Layer.Layer<unknown, E | WarmUpFailed, Handler.Needs<R, never, Handler.HandlerOptions>> => {
  const { definition } = model
  return Handler.instances(
    model,
    make,
    options,
    ({ execute, onSequenceEnd }, context: Context.Context<never>, handling) => {
      const shapes = shapesOf(definition, inner)
      const collect = collector(definition, shapes, handling)
      const respond = (request: Request) => {
        const scope = new RequestScope<undefined>(request, handling)
        let answer = last
        const emit = (returned: unknown) => {
          if (returned === reschedule) return Effect.sync(() => void (answer = unfinished))
          return Effect.flatMap(
            Effect.fromResult(collect(returned, undefined)),
            (outputs) => request.emit?.({ outputs, parameters: scope.takeResponseParameters() }) ?? Effect.void,
          )
        }
        return Effect.suspend(() =>
          Stream.runForEach(stream(execute, withInputs(shapes, scope, request), scope), emit),
        ).pipe(
          Effect.map(() => answer),
          Effect.onError(() => Effect.sync(() => scope.cancel())),
          Effect.updateContext((context: Context.Context<never>) => scope.context<never>(context)),
        )
      }
      return fromEffect(context, ({ requests }) => {
        if (onSequenceEnd !== undefined) SequenceEndings.watch(requests, onSequenceEnd)
        return Effect.map(
          Effect.forEach(requests, (request) => outcomeOf(definition, handling, respond(request))),
          Handler.executionResult,
        )
      })
    },
    { decoupled: true, concurrency: Math.max(1, definition.maxBatchSize) },
  )
}

const stream = responses<ScriptRequest, unknown, never, never, undefined>

type Outputs = Response["outputs"]

/** The shapes of a script, which a configuration's `reshape` makes differ from those of its callers. */
interface ScriptShapes {
  readonly signature: Signature
  readonly reshapes: Reshape.Reshapes
  /** Names of the outputs that are reshaped. */
  readonly reshaped: ReadonlySet<string>
}

const shapesOf = ({ signature, maxBatchSize }: ScriptDefinition, inner: Signature): ScriptShapes => ({
  signature: inner,
  reshapes: Reshape.make(signature, inner, maxBatchSize > 0),
  reshaped: new Set(
    inner.outputs.flatMap(({ name, dims }, index) => (dims === signature.outputs[index]?.dims ? [] : [name])),
  ),
})

/** The outputs that a script returned for one request; logs an output of another rank once. */
const collector = (
  { name, maxBatchSize }: ScriptDefinition,
  { signature, reshapes, reshaped }: ScriptShapes,
  { context }: HandlerEnvironment,
): ((returned: unknown, rows: number | undefined) => Result.Result<Outputs, InferenceError>) => {
  const warned = new Set<string>()
  return (returned, rows) => {
    const collected = ScriptOutputs.collect(signature.outputs, returned, { batching: maxBatchSize > 0, rows })
    if (Result.isFailure(collected)) return Result.fail(Handler.wrongOutput(name, collected.failure))
    for (const { field, message } of collected.success.unusual) {
      if (reshaped.has(field)) return Result.fail(Handler.wrongOutput(name, { field, message }))
      if (warned.has(field)) continue
      warned.add(field)
      Effect.runForkWith(context)(Effect.logWarning(`Output '${field}' of model '${name}' is ${message}`))
    }
    const { tensors } = collected.success
    return Result.succeed(tensors.map((tensor, position) => tensor && reshapes.outputs(tensor, position)))
  }
}

const withInputs = (
  { signature, reshapes }: ScriptShapes,
  request: RequestScope<undefined>,
  received: Request | undefined,
): ScriptRequest => {
  const { inputs = [], sequence } = received ?? {}
  const reshaped = inputs.map((tensor, position) => tensor && reshapes.inputs(tensor, position))
  // Each tensor has one datatype, which the type system cannot know.
  const tensors = named(signature.inputs, reshaped) as ScriptRequest["inputs"]
  return Object.assign(request, { inputs: tensors, sequence: sequence && placeOf(sequence) })
}

/** Without the state, which belongs to the scheduler. */
const placeOf = ({ id, isStart, isEnd, isReady }: SequencePosition): ScriptSequence => ({ id, isStart, isEnd, isReady })

const unfinished: Response = { outputs: [], parameters: noParameters, isRescheduled: true }
const rescheduled = Result.succeed(unfinished)

/** A request's own outcome. The caller receives the message of an error as it is, as from a Python model. */
const outcomeOf = <E>(
  definition: ScriptDefinition,
  { instance }: HandlerEnvironment,
  response: Effect.Effect<Response, E>,
): Effect.Effect<Result.Result<Response, InferenceError>> =>
  Effect.flatMap(Effect.exit(response), (exit): Effect.Effect<Result.Result<Response, InferenceError>> => {
    if (Exit.isSuccess(exit)) return Effect.succeed(Result.succeed(exit.value))
    const { error, unexpected } = Handler.failure(definition, instance, exit.cause)
    const raised = Cause.findError(exit.cause)
    const isThrown = Result.isSuccess(raised) && raised.success instanceof UserCode.ThrownError
    const failed = Result.fail(isThrown ? Handler.requestError(definition, raised.success.error) : error)
    return unexpected === undefined
      ? Effect.succeed(failed)
      : Effect.as(Handler.logUnexpected(definition.name, unexpected), failed)
  })

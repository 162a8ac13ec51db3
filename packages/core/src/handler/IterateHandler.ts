/**
 * A decoupled model from a function of one step of all its running requests (continuous batching): the batch is formed
 * again before each step, so a request that is done leaves at once, and one that waits takes its place.
 *
 *   request ─► backlog ─► running ─► batch ─► step ─┬─ not done: response, state ─► running
 *                                                   └─ done: last response ───────► end
 */
import { type Context, Effect, Exit, type Layer, Result } from "effect"
import type { ModelClass } from "../call/ModelClass.ts"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import type { Instance } from "../instance/Instance.ts"
import type { Declared, Failing } from "../model/Declared.ts"
import type { Batched } from "../model/Definition.ts"
import type { Fields } from "../model/Field.ts"
import type { GivenOptions } from "../model/GivenOptions.ts"
import * as InitialStates from "../model/InitialStates.ts"
import * as SequenceOptions from "../model/SequenceOptions.ts"
import { noParameters, type Request, type Response } from "../request/Request.ts"
import type { SequencePosition } from "../request/SequencePosition.ts"
import * as BatchHandler from "./BatchHandler.ts"
import type { CheckedHandler, InForm, Make, RequirementsOf, ValueOf } from "./CheckedHandler.ts"
import type { BatchedStates, FirstMistake, OutputsIn, Sequenced, StateMistake } from "./HandledSequence.ts"
import * as Handler from "./Handler.ts"
import type { JoinedBatch } from "./JoinedBatch.ts"
import type { OutputMistake } from "./OutputMistake.ts"
import { unhosted } from "./SequenceHandler.ts"
import { positionOf, SequenceStates } from "./SequenceStates.ts"
import { last } from "./StreamHandler.ts"
import { type HandlerResult, mapResult } from "./UserCode.ts"

/** The state that a request has between its steps, and limits of running requests. */
export interface IterationOptions extends Omit<
  SequenceOptions.SequenceOptions,
  "maxIdle" | "maxIdleLimit" | "maxSequences"
> {
  /** Requests that run at the same time; further ones wait. Default `maxBatchSize`: all of them share each step. */
  readonly maxRunning?: number
}

type StateSchemaOf<Q> = Q extends { readonly state: infer S extends SequenceOptions.StateSchema } ? S : undefined

/** One step of the running requests, one row each. */
export interface StepBatch<I extends Fields, S, P extends Declared> extends JoinedBatch<I, P> {
  /** Whether it is the first step of a request, in the order of `requests`. */
  readonly isFirst: ReadonlyArray<boolean>
  /** State tensors of all rows along axis 0, or the values of a Schema in the order of `requests`. */
  readonly state: BatchedStates<S>
}

/** The result of one step. All lists are in the order of `requests`. */
export interface StepResult<O extends Fields, S> {
  readonly outputs: Batched<O>
  /** For the next step. */
  readonly state: BatchedStates<S>
  /** The requests for which this was the last step. */
  readonly isDone: ReadonlyArray<boolean>
  /** The requests whose outputs are a response. Default: all. */
  readonly emits?: ReadonlyArray<boolean>
}

/** The inputs and states of all running requests in; outputs, next states, and the requests that are done out. */
export type IterateHandler<I extends Fields, O extends Fields, S, E, R, P extends Declared = undefined> = (
  batch: Batched<I>,
  step: StepBatch<I, S, P>,
) => HandlerResult<StepResult<O, S>, E, R>

type CheckedIterateHandler<
  N extends string,
  I extends Fields,
  O extends Fields,
  S,
  A,
  EMake,
  RMake,
  P extends Declared,
> = CheckedHandler<
  [batch: Batched<I>, step: StepBatch<I, S, P>],
  A,
  HandlerResult<StepResult<O, S>, never, never>,
  HandlerResult<StepResult<O, S>, Failing<P>, unknown>,
  InForm<A, StepResult<O, S>, Failing<P>>,
  FirstMistake<
    Sequenced<N, P, A>,
    FirstMistake<
      OutputMistake<N, Batched<O>, OutputsIn<ValueOf<A>>, A, HandlerResult<StepResult<O, S>, Failing<P>, unknown>>,
      StateMistake<N, S, BatchedStates<S>, ValueOf<A>>
    >
  >,
  EMake,
  RMake
>

/**
 * Provides a decoupled model from a function of one step of its running requests, such as one token of each text:
 *
 * ```ts
 * Model.iterate(Count, { state: Schema.Int, initial: () => 0 }, ({ TO }, { state }) => {
 *   const next = state.map((count) => count + 1)
 *   return {
 *     outputs: { N: Tensor.make("INT32", TO.shape, Int32Array.from(next)) },
 *     state: next,
 *     isDone: next.map((count, row) => count >= (TO.data[row] ?? 0)),
 *   }
 * })
 * ```
 *
 * Each step gets the inputs and the states of its requests, and answers each with a response. A failure fails every
 * request of the step. A slow reader delays no other request; it fails if 10,000 responses wait for it.
 */
export function iterate<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  const Q extends IterationOptions,
  A = never,
  EMake = never,
  RMake = never,
  P extends Declared = undefined,
  const Options extends Handler.StreamOptions<I> = {},
>(
  model: ModelClass<Self, N, I, O, P>,
  iteration: Q & SequenceOptions.CheckedSequence<Q>,
  make: CheckedIterateHandler<N, I, O, StateSchemaOf<Q>, A, EMake, RMake, P>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, RequirementsOf<A>, Options>>
export function iterate<
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  S,
  E extends Failing<P>,
  R,
  EMake,
  RMake,
  P extends Declared,
  const Options extends Handler.StreamOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  iteration: IterationOptions,
  make: Make<IterateHandler<I, O, S, E, R, P>, EMake, RMake>,
  options?: GivenOptions<Options, Handler.StreamOptions<I>>,
): Layer.Layer<Self, EMake | Handler.Failure<Options>, Handler.Needs<RMake, R, Options>> {
  const { definition } = model
  const { name, signature, maxBatchSize } = definition
  const { maxRunning = Math.max(1, maxBatchSize), ...limits } = iteration
  const declared = SequenceOptions.resolve(name, signature, { ...limits, maxSequences: maxRunning })
  const sequencing = InitialStates.complete(
    { ...definition, state: declared.state },
    { ...declared.sequencing, isIterative: true, maxIdle: Infinity, maxIdleLimit: Infinity },
  )
  const states = new SequenceStates({ ...definition, state: declared.state, sequencing })
  const execute = BatchHandler.executor(states.inner)
  /** Steps whose batch has not ended. */
  const steps = new WeakMap<SequencePosition, Step>()

  const handling =
    (handler: IterateHandler<I, O, S, E, R, P>) => (batch: Batched<Fields>, joined: JoinedBatch<Fields>) => {
      const { inputs, state } = states.split(batch)
      const positions = joined.requests.map(positionOf)
      const handled = Object.assign(joined, {
        isFirst: positions.map(({ isStart }) => isStart),
        state: states.batched(positions, state),
      })
      // The inner model has the inputs and the states that the types of this one declare.
      const returned = handler(inputs as Batched<I>, handled as object as StepBatch<I, S, P>)
      return mapResult(returned, (result) => {
        const outputs = states.joined(result)
        const values = states.valuesIn(result, positions.length)
        const isDone = flags(name, "isDone", result.isDone, positions.length)
        const emits = flags(name, "emits", result.emits ?? positions.map(() => true), positions.length)
        for (const [index, position] of positions.entries()) {
          states.keepValue(position, values[index])
          steps.set(position, { isDone: isDone[index] === true, emits: emits[index] === true })
        }
        return outputs as Batched<Fields>
      })
    }

  /** Gives the response of a step to its caller, and returns an unfinished request to the queue. */
  const stepped = (request: Request | undefined, response: Response): Result.Result<Response, InferenceError> => {
    // A warm-up is one step.
    const { isDone, emits } = (request?.sequence && steps.get(request.sequence)) ?? { isDone: true, emits: true }
    if (emits && request?.emit !== undefined) {
      const outputs = response.outputs.slice(0, signature.outputs.length)
      const exit = Effect.runSyncExit(request.emit({ outputs, parameters: response.parameters }, isDone))
      const error = Exit.isFailure(exit) ? Exit.findError(exit) : undefined
      if (error !== undefined && Result.isSuccess(error)) return Result.fail(error.success)
    }
    if (isDone) return Result.succeed(last)
    const kept = response.outputs.slice(signature.outputs.length)
    const outputs = [...signature.outputs.map(() => undefined), ...kept]
    return Result.succeed({ outputs, parameters: noParameters, isRescheduled: true })
  }

  const stepping =
    (execute: Instance["execute"]): Instance["execute"] =>
    (batch, settle) =>
      execute(batch, (exit) =>
        settle(
          Exit.map(exit, (result) => ({
            ...result,
            outcomes: result.outcomes.map((outcome, index) =>
              Result.flatMap(outcome, (response) => stepped(batch.requests[index], response)),
            ),
          })),
        ),
      )

  return Handler.instances(
    model,
    unhosted(name, make),
    options,
    (handler, context: Context.Context<R>, environment) =>
      stepping(states.committing(execute<E, R>(handling(handler), context, environment))),
    { decoupled: true, isStepwise: true, sequencing },
  )
}

interface Step {
  readonly isDone: boolean
  readonly emits: boolean
}

const flags = (model: string, key: string, given: unknown, count: number): ReadonlyArray<unknown> => {
  if (Array.isArray(given) && given.length === count) return given
  const found = Array.isArray(given) ? `${given.length} values` : "no list"
  throw new ExecutionFailed({
    message: `the handler of model '${model}' returned ${found} as '${key}' for a step of ${count} requests`,
  })
}

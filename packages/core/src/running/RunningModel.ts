/**
 * A model that can be asked: what the registry holds, the front ends call, and a typed service wraps. Where it runs (an
 * ONNX instance, a handler, another server) shows nowhere in it.
 */
import { Cause, Context, Effect, Queue, Result, type Scope, Stream } from "effect"
import type { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { Batching } from "../model/Batching.ts"
import { ExecutionFailed, type InferenceError, type Unrecoverable } from "../error/InferenceError.ts"
import type { FlatBatch } from "../batch/FlatBatch.ts"
import type { Cancel, Reply, Request, Response } from "../request/Request.ts"
import type { InstanceGroup } from "../instance/Instance.ts"
import type { GroupOptions } from "../instance/InstancePlan.ts"
import type { Prepared } from "../instance/InstanceSet.ts"
import type { Fields } from "../model/Field.ts"
import type { ModelFile } from "./ModelFile.ts"
import type { WarmUps } from "../model/WarmUpOptions.ts"
import type { Statistics } from "../metrics/ModelStatistics.ts"
import type { Signature } from "../tensor/TensorSpec.ts"
import type { ModelConfig } from "@nereid/protocol/model_config"

export interface RunningModel {
  readonly name: string
  /** A positive integer, in digits. */
  readonly version: string
  /** What runs it, for metadata: `onnxruntime_onnx`, `nereid`. */
  readonly platform: string
  readonly signature: Signature
  /** The most rows of one batch; 0 for a model without a batch dimension. */
  readonly maxBatchSize: number
  /** Whether a request has any number of responses, and not exactly one. */
  readonly decoupled: boolean
  /**
   * Whether a request that has an `emit` is answered through it. Default `decoupled`; also where the model is elsewhere, and
   * may be decoupled or not.
   */
  readonly emits?: boolean
  /**
   * Whether anything may use the bytes of a request's inputs once it has succeeded. Where nothing does, their memory is
   * given back at that moment, and not when the garbage collector comes to it.
   */
  readonly keepsInputs: boolean
  /** As declared. */
  readonly batching: Batching
  /** How requests of different shapes share a batch; undefined where they do not, or as `batching` says. */
  readonly flat?: FlatBatch | undefined
  /** Whether it answers what it was asked before without an execution. Default false. */
  readonly responseCache?: boolean
  /** What it is loaded from; undefined where that is code, or elsewhere. */
  readonly modelFile?: ModelFile | undefined
  /** What its instances were tried with. */
  readonly warmUp?: WarmUps<Fields> | undefined
  /** What executes its batches here; none for a model that runs elsewhere. */
  readonly instanceGroups: ReadonlyArray<InstanceGroup>
  readonly statistics: Statistics
  /** Why it does not run and never will; absent for one that runs. */
  readonly unavailable?: string
  /** Whether it is declared and yet to come, so that it refuses its requests. Default false. */
  readonly isLoading?: boolean
  /** What finds circles of models that wait for each other; absent for one whose execution asks no other model. */
  readonly asker?: CallCycleDetector | undefined
  /** Whether a request would be executed now. */
  readonly isReady: () => boolean
  /** Waits for the failure that makes the model, and the process that it runs in, of no use; absent where none is. */
  readonly unrecoverable?: Effect.Effect<Unrecoverable>
  /** Milliseconds that a request without a deadline may take; absent where it may take any time. */
  readonly timeout?: number | undefined
  /** Requests accepted and not yet handed to an instance. */
  readonly pending: () => number
  readonly submit: (request: Request, reply: Reply) => Cancel
  /** Completes once every request that it has accepted is answered. For a model that is given no more of them. */
  readonly drained: Effect.Effect<void>
  /** Keeps `drained` waiting, for one whose request will ask it later. Absent where the model is elsewhere, and not released. */
  readonly keep?: () => Release
  /** Ends its instances, ahead of the scope that it was built in; absent where it has nothing of its own to end. */
  readonly release?: Effect.Effect<void>
  /**
   * Set once it has left: the model that typed callers, who were given this one, ask from then on. `caller` is the model whose
   * code asks, undefined for any other code.
   */
  successor?: (caller: CallCycleDetector | undefined) => RunningModel
  /**
   * Has instances of these groups execute its batches, of which those that are there already stay; absent for one that runs
   * elsewhere. Others are loaded and warmed up now, and come in once it is committed; without that they are gone at the end of
   * the scope, and all is as it was. Not at the same time as another one, nor where instances have layers of their own.
   */
  readonly regroup?: (groups: ReadonlyArray<GroupOptions>) => Effect.Effect<Prepared, unknown, Scope.Scope>
  /** What it was loaded with; undefined for one that was declared in code. */
  readonly configuration?: ModelConfig
}

/** What is kept is needed no more; harmless where it is called again. */
export type Release = () => void

/** Is shown every model that comes to run while it is provided, ahead of its first request. Default: nobody looks. */
export const Watcher = Context.Reference<(model: RunningModel) => void>("@nereid/core/Watcher", {
  defaultValue: () => () => {},
})

/** What a request is made to. */
export type Askable = Pick<RunningModel, "decoupled" | "emits" | "submit">

/** Asks for exactly one response: a decoupled model that answers by none or by several fails. */
export const ask = (model: Askable, request: Request, reply: Reply): Cancel => {
  if (!model.decoupled) return model.submit(request, reply)
  let first: Response | undefined
  const notSingle = (count: string) =>
    reply(Result.fail(new ExecutionFailed({ message: `expected a single response, got ${count}` })))
  const emit = (response: Response) =>
    Effect.sync(() => {
      if (first === undefined) first = response
      else {
        // There may be no end of them.
        cancel()
        notSingle("2 or more")
      }
    })
  const cancel = model.submit({ ...request, emit }, (outcome) => {
    if (Result.isFailure(outcome)) reply(outcome)
    else if (first === undefined) notSingle("0")
    else reply(Result.succeed(first))
  })
  return cancel
}

/** The same as an effect, which takes the request back when it is interrupted. */
export const infer = (model: RunningModel, request: Request): Effect.Effect<Response, InferenceError> =>
  Effect.callback((resume) => Effect.sync(ask(model, request, (outcome) => resume(Effect.fromResult(outcome)))))

/** Responses that wait for a reader; a model that is ahead of it by so many waits too. */
const ahead = 16

/** The responses of one request, as they come: one where the model is not decoupled. A reader that leaves takes it back. */
export const stream = (model: Askable, request: Request): Stream.Stream<Response, InferenceError> =>
  Stream.callback<Response, InferenceError>(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const { decoupled, emits = decoupled } = model
          return model.submit(
            emits ? { ...request, emit: (response) => Queue.offer(queue, response) } : request,
            (outcome) => {
              if (Result.isFailure(outcome)) return void Queue.failCauseUnsafe(queue, Cause.fail(outcome.failure))
              if (!emits) Queue.offerUnsafe(queue, outcome.success)
              Queue.endUnsafe(queue)
            },
          )
        }),
        (cancel) => Effect.sync(cancel),
      ),
    { bufferSize: ahead },
  )

/**
 * One model with many variants: the same code with different weights. A request parameter selects the variant. Callers
 * see one model; Variants.ts decides which variants are loaded.
 */
import { Context, Duration, Effect, Exit, Layer, Option, Result, Scope } from "effect"
import { constVoid } from "effect/Function"
import { inference } from "../call/EffectCalls.ts"
import type { ModelClass } from "../call/ModelClass.ts"
import { errorMessage } from "../error/ErrorMessage.ts"
import { ExecutionFailed, type InferenceError, isInferenceError } from "../error/InferenceError.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import { requireInteger } from "../model/OptionChecks.ts"
import type { Declared, RequestParameters } from "../model/Declared.ts"
import type { Fields } from "../model/Field.ts"
import * as ParameterStage from "../provide/ParameterStage.ts"
import { SharedStatistics } from "../provide/Provide.ts"
import { CallCycleDetector } from "../request/CallCycleDetector.ts"
import type { Request } from "../request/Request.ts"
import * as ModelDescription from "../running/ModelDescription.ts"
import * as ModelLife from "../running/ModelLife.ts"
import { RunningModel, Watcher } from "../running/RunningModel.ts"
import * as SubmitPipeline from "../scheduler/SubmitPipeline.ts"
import type { Submit } from "../scheduler/SubmitPipeline.ts"
import * as Variants from "./Variants.ts"

/** Options of a model that is loaded with its first request. */
export interface OnDemandOptions {
  /** How long an idle variant stays loaded. Default: until another variant requires its place. */
  readonly idleTimeToLive?: Duration.Input
  /** Whether its layers provide decoupled models (`Model.stream`). Default false. */
  readonly decoupled?: boolean
}

/** Options of a model with variants that are loaded on demand. */
export interface FamilyOptions<P extends Declared, Self, E, R> extends OnDemandOptions {
  /**
   * Selects the variant of a request by its parameters: those that the model declares, or as received. A thrown error
   * fails the request.
   */
  readonly key: (parameters: RequestParameters<P>) => string
  /** Provides the model as this variant. What it fails with is what the requests fail with that wait for it. */
  readonly layer: (key: string) => Layer.Layer<Self, E, R>
  /**
   * Variants that are loaded at a time. For one more, the one goes that has been idle for longest; if none is,
   * QueueFull.
   */
  readonly capacity: number
}

/**
 * A model whose variants are loaded on demand, each with separate instances, queue and batches:
 *
 * ```ts
 * const WriterLive = Model.family(Writer, {
 *   key: ({ adapter }) => adapter,
 *   layer: (adapter) => Model.each(Writer, Effect.map(loadAdapter(adapter), write)),
 *   capacity: 8,
 *   idleTimeToLive: "10 minutes",
 * })
 * ```
 *
 * The first request of a variant waits until it is loaded and warmed up. The next request retries a variant that failed
 * to load. The model is ready from the start.
 * @throws TypeError if the capacity is not a positive integer, or if the duration is invalid or negative
 */
export const family = <Self, N extends string, I extends Fields, O extends Fields, P extends Declared, E, R>(
  model: ModelClass<Self, N, I, O, P>,
  { key, layer, capacity, idleTimeToLive = Duration.infinity, decoupled = false }: FamilyOptions<P, Self, E, R>,
): Layer.Layer<Self, never, R> => {
  const { definition } = model
  const { name, batching } = definition
  requireInteger(name, "capacity", capacity, 1)
  const idle = Option.getOrUndefined(Option.map(Duration.fromInput(idleTimeToLive), Duration.toMillis))
  if (idle === undefined || !(idle >= 0)) {
    throw new TypeError(`Model "${name}": idleTimeToLive must be a time, but ${String(idleTimeToLive)} was given.`)
  }

  const load = Effect.fn("Family.load")(function* (key: string, statistics: ModelStatistics) {
    const watch = yield* Watcher
    // Shared services are those that the family was built with.
    const context = yield* Layer.build(layer(key)).pipe(
      Effect.provideService(SharedStatistics, { model: name, statistics }),
      // Watchers see the family instead of its variants.
      Effect.provideService(Watcher, (other) => other.description.name === name || watch(other)),
    )
    const { model: variant } = Context.get(context, model)
    if (variant.calls.decoupled === decoupled) return variant
    const kinds = [variant.calls.decoupled, decoupled].map((is) => (is ? "decoupled" : "not decoupled"))
    const message = `the loaded variant of model '${name}' is ${kinds[0]}, but the model is declared as ${kinds[1]}`
    return yield* new ExecutionFailed({ message })
  })

  const keyOf = ({ parameters, declared = parameters }: Request): Result.Result<string, InferenceError> => {
    try {
      // Decoded by what the model declares, as the parameters of a handler.
      return Result.succeed(key(declared as RequestParameters<P>))
    } catch (error) {
      if (isInferenceError(error)) return Result.fail(error)
      const reason = errorMessage(error)
      return Result.fail(new ExecutionFailed({ message: `cannot select a variant of model '${name}': ${reason}` }))
    }
  }

  const make = Effect.fnUntraced(function* (release: Effect.Effect<void>) {
    const statistics = new ModelStatistics()
    const cycles = new CallCycleDetector(name)
    const variants = yield* Variants.make({
      model: name,
      capacity,
      idleTimeToLive: idle,
      maxWaiting: batching.maxQueueSize,
      statistics,
      cycles,
      load: (key) => load(key, statistics),
    })
    const parameters = ParameterStage.make(definition, statistics)
    const submit: Submit = (request, reply) => {
      const found = keyOf(request)
      if (Result.isSuccess(found)) return variants.submit(found.success, request, reply)
      statistics.failed("REJECTED", 0)
      reply(Result.fail(found.failure))
      return constVoid
    }
    return new RunningModel({
      description: ModelDescription.make(definition, { platform: "nereid", statistics }),
      calls: {
        decoupled,
        emits: decoupled,
        keepsInputs: true,
        copiesInputs: true,
        timeout: undefined,
        cycles,
        submit: SubmitPipeline.make({ parameters }, submit),
      },
      life: ModelLife.make({
        isReady: () => variants.isReady(),
        unrecoverable: variants.unrecoverable,
        pending: () => variants.pending(),
        drained: variants.drained,
        release,
      }),
    })
  })

  return Layer.effect(
    model,
    Effect.gen(function* () {
      const familyScope = yield* Scope.fork(yield* Scope.Scope)
      const running = yield* Scope.provide(make(Scope.close(familyScope, Exit.void)), familyScope)
      const watch = yield* Watcher
      watch(running)
      return inference(definition, running)
    }),
  )
}

/**
 * A model that its first request loads, and that is unloaded after it has been idle for the given time:
 *
 * ```ts
 * const BertLive = Model.onDemand(Bert, Onnx.layer(Bert, { file: "bert.onnx" }), { idleTimeToLive: "10 minutes" })
 * ```
 */
export const onDemand = <Self, N extends string, I extends Fields, O extends Fields, P extends Declared, E, R>(
  model: ModelClass<Self, N, I, O, P>,
  layer: Layer.Layer<NoInfer<Self>, E, R>,
  options: OnDemandOptions = {},
): Layer.Layer<Self, never, R> => family(model, { ...options, key: () => "", layer: () => layer, capacity: 1 })

/**
 * Warms up the instances of a model before it takes requests. The first request then does not pay for compiled code,
 * memory allocation or connections, and broken models are detected. Each instance executes all warm-up requests,
 * through a scheduler like the model's; statistics exclude them.
 */
import { Clock, Duration, Effect, Option, Result, type Scope, Stream } from "effect"
import { requireInteger } from "../model/OptionChecks.ts"
import type { Definition, Input } from "../model/Definition.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Fields } from "../model/Field.ts"
import { noParameters, type Parameters, type Request } from "../request/Request.ts"
import type { Instance } from "../instance/Instance.ts"
import type { RunningModel } from "../running/RunningModel.ts"
import { infer, stream } from "../running/CallableModel.ts"
import * as TypedCalls from "../call/TypedCalls.ts"
import {
  isSamples,
  type SyntheticInputs,
  valuesOf,
  warmUpList,
  type WarmUpOptions,
  type WarmUps,
} from "../model/WarmUpOptions.ts"
import { WarmUpFailed } from "./WarmUpFailed.ts"
import * as WarmUpInput from "../synthetic/SyntheticTensor.ts"
import { concat, type TypedTensor } from "../tensor/TypedTensor.ts"
import * as MonotonicTime from "../request/MonotonicTime.ts"

/** The error of options with a warm-up; never without one. */
export type Errors<Options> = "warmUp" extends keyof Options ? WarmUpErrorOf<Options["warmUp"]> : never

export type WarmUpErrorOf<W> =
  W extends ReadonlyArray<infer One>
    ? WarmUpErrorOf<One>
    : W extends undefined | { readonly onFailure: "ignore" }
      ? never
      : WarmUpFailed

/** Makes a model of this one instance, until the scope ends. */
export type SingleInstanceModel = (instance: Instance) => Effect.Effect<RunningModel, never, Scope.Scope>

/** Warms up one instance after it was built. */
export type InstanceWarmUp<E> = (instance: Instance, makeModel: SingleInstanceModel) => Effect.Effect<void, E>

/** @throws TypeError if an option is out of range, or a size names an unknown dim */
export const make = <I extends Fields, O extends Fields, const W extends WarmUps<I> | undefined>(
  definition: Definition<I, O>,
  warmUp: W,
): InstanceWarmUp<WarmUpErrorOf<W>> | undefined => {
  const settings = warmUpList<I>(warmUp).map((options, index) => check(definition, options, index))
  if (settings.length === 0) return undefined
  const instanceWarmUp: InstanceWarmUp<WarmUpFailed> = (instance, makeModel) =>
    Effect.forEach(settings, (one) => warmUpInstance(definition, one, instance, makeModel), { discard: true })
  // The type excludes the errors of warm-ups whose failures are ignored.
  return instanceWarmUp as InstanceWarmUp<WarmUpErrorOf<W>>
}

const warmUpInstance = <I extends Fields, O extends Fields>(
  definition: Definition<I, O>,
  settings: WarmUpSettings<I>,
  instance: Instance,
  makeModel: SingleInstanceModel,
): Effect.Effect<void, WarmUpFailed> => {
  const executed = Effect.mapError(execute(definition, settings, instance, makeModel), (error) =>
    failed(definition, settings.name, instance, error),
  )
  if (!settings.ignoresFailure) return executed
  return Effect.catch(executed, ({ message }) => Effect.logWarning(`${message}; the load continues`))
}

interface WarmUpSettings<I extends Fields> {
  readonly name: string
  readonly inputs: WarmUpInput.SyntheticValues | SyntheticInputs<I> | ReadonlyArray<Input<I>>
  readonly sizes: WarmUpInput.Sizes
  readonly batchSizes: ReadonlyArray<number>
  /** Whether requests may share batches. */
  readonly sharesBatches: boolean
  readonly parameters: Parameters
  readonly count: number
  readonly timeout: Duration.Duration
  /** Whether a failure is a warning. */
  readonly ignoresFailure: boolean
}

const check = <I extends Fields, O extends Fields>(
  { name, maxBatchSize, signature }: Definition<I, O>,
  options: WarmUpOptions<I>,
  index: number,
): WarmUpSettings<I> => {
  const { inputs = "zeros", sizes = {}, batchSize = 1, count = 1, timeout = "5 minutes" } = options
  const wrong = (text: string) => new TypeError(`Model "${name}": warmUp.${text}.`)
  requireInteger(name, "warmUp.count", count, 1)
  const batchSizes = typeof batchSize === "number" ? [batchSize] : batchSize
  const maxRows = Math.max(1, maxBatchSize)
  for (const size of batchSizes) {
    requireInteger(name, "warmUp.batchSize", size, 1)
    if (size > maxRows) throw wrong(`batchSize must not exceed maxBatchSize ${maxBatchSize}, but ${size} was given`)
  }
  const symbols = new Set(signature.inputs.flatMap(({ dims }) => dims.filter((dim) => typeof dim === "string")))
  const given = Object.entries<number | undefined>(sizes).flatMap(([dim, size]) =>
    size === undefined ? [] : [[dim, size] as const],
  )
  for (const [dim, size] of given) {
    if (!symbols.has(dim)) throw wrong(`sizes: no input has a dim "${dim}"`)
    requireInteger(name, `warmUp.sizes.${dim}`, size, 1)
  }
  if (typeof inputs !== "string" && !isSamples(inputs)) {
    const names = new Set(signature.inputs.map(({ name }) => name))
    const stranger = Object.keys(inputs).find((input) => !names.has(input))
    if (stranger !== undefined) throw wrong(`inputs: the model has no input "${stranger}"`)
  }
  const duration = Duration.fromInput(timeout)
  if (Option.isNone(duration) || Duration.toMillis(duration.value) <= 0) {
    throw wrong(`timeout must be a time above 0, but ${String(timeout)} was given`)
  }
  const { parameters = noParameters } = options
  return {
    name: options.name ?? String(index),
    inputs,
    sizes: Object.fromEntries(given),
    batchSizes,
    sharesBatches: isSamples(inputs) && options.batchSize === undefined,
    parameters,
    count,
    timeout: duration.value,
    ignoresFailure: options.onFailure === "ignore",
  }
}

const execute = <I extends Fields, O extends Fields>(
  definition: Definition<I, O>,
  settings: WarmUpSettings<I>,
  instance: Instance,
  makeModel: SingleInstanceModel,
): Effect.Effect<void, InferenceError> =>
  Effect.gen(function* () {
    const model = yield* makeModel(instance)
    const clock = yield* Clock.Clock
    const inferOnce = (request: Request) =>
      model.calls.decoupled
        ? Stream.runDrain(Stream.take(stream(model.calls, request), 1))
        : infer(model.calls, request)
    const running = `model '${definition.name}' instance ${instance.name} is running warmup sample '${settings.name}'`
    for (let turn = 0; turn < settings.count; turn++) {
      yield* Effect.logDebug(`${running} for iteration ${turn + 1}`)
      const warmUpRequests = yield* Effect.fromResult(
        requests(definition, settings, model, MonotonicTime.millis(clock)),
      )
      const concurrency = settings.sharesBatches ? "unbounded" : 1
      yield* Effect.forEach(warmUpRequests, inferOnce, { concurrency, discard: true })
    }
  }).pipe(Effect.scoped)

const requests = <I extends Fields, O extends Fields>(
  definition: Definition<I, O>,
  { inputs, sizes, batchSizes, parameters, timeout }: WarmUpSettings<I>,
  model: RunningModel,
  now: number,
): Result.Result<ReadonlyArray<Request>, InferenceError> => {
  if (isSamples(inputs)) {
    const calls = TypedCalls.make(definition, model)
    const request = (sample: Input<I>, rows: number) =>
      Result.map(calls.samples.request(sample, { id, timeout }, now), (one): Request => ({
        ...one,
        parameters,
        rows,
        inputs: one.inputs.map((tensor) => tensor && repeated(tensor, rows)),
      }))
    return Result.all(inputs.flatMap((sample) => batchSizes.map((rows) => request(sample, rows))))
  }
  const random = WarmUpInput.random()
  const batching = definition.maxBatchSize > 0
  const synthetic = batchSizes.map((rows): Request => ({
    id,
    inputs: definition.signature.inputs.map((spec) => {
      const values = valuesOf(inputs, spec)
      if (values === undefined) return undefined
      const row = WarmUpInput.shape(spec.dims, sizes)
      return WarmUpInput.tensor(spec, batching ? [rows, ...row] : row, values, random)
    }),
    rows,
    parameters,
    deadline: now + Duration.toMillis(timeout),
  }))
  return Result.succeed(synthetic)
}

const repeated = (row: TypedTensor, rows: number): TypedTensor =>
  concat([row, ...Array.from({ length: rows - 1 }, () => row)])

/** The id of these requests, for handlers and error texts. */
const id = "warm-up"

const failed = (
  { name, version }: Definition<Fields, Fields>,
  sample: string,
  instance: Instance,
  { message }: InferenceError,
) =>
  new WarmUpFailed({
    model: name,
    version,
    sample,
    reason: message,
    message: `model '${name}' version ${version} has failed its warm-up on instance ${instance.name}: ${message}`,
  })

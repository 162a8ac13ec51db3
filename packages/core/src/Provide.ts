/**
 * From instances to a service: statistics, scheduler and the typed face of a model, as the layer that provides it. Every
 * way to provide a model ends here, whatever its instances are.
 */
import { Clock, Duration, Effect, Layer, Result, type Scope, Stream } from "effect"
import * as Batch from "./Batch.ts"
import type { Batched, CallOptions, Definition, Inference, ModelClass, Sample } from "./Definition.ts"
import { ExecutionFailed, InvalidRequest, type InferenceError } from "./Errors.ts"
import type { Fields } from "./Field.ts"
import { noParameters, type Request, type Response } from "./Inference.ts"
import type { Instance } from "./Instance.ts"
import { infer, type RunningModel, stream, Watcher } from "./RunningModel.ts"
import * as SampleCodec from "./SampleCodec.ts"
import * as Scheduler from "./Scheduler.ts"
import { Statistics } from "./Statistics.ts"
import { type TensorSpec } from "./TensorSpec.ts"
import { symbolMismatch } from "./SymbolMismatch.ts"
import { reshape, type TypedTensor } from "./TypedTensor.ts"

export interface InstancesOptions<E, R> {
  /** What runs the model, for metadata. */
  readonly platform: string
  /** Whether they answer a request by any number of responses, through its `emit`; each batch is one request then. */
  readonly decoupled?: boolean
  /** As in RunningModel. Default true. */
  readonly keepsInputs?: boolean | undefined
  /** At least one; acquired when the layer is built, released after the scheduler has stopped. */
  readonly instances: Effect.Effect<ReadonlyArray<Instance>, E, R>
}

/** The layer of a model that these instances execute, behind a scheduler of its own. */
export const fromInstances = <Self, N extends string, I extends Fields, O extends Fields, E, R>(
  model: ModelClass<Self, N, I, O>,
  options: InstancesOptions<E, R>,
): Layer.Layer<Self, E, Exclude<R, Scope.Scope>> =>
  Layer.effect(
    model,
    Effect.gen(function* () {
      const [loading, instances] = yield* Effect.timed(options.instances)
      const running = yield* run(model.definition, options, instances)
      running.statistics.loadSeconds = Duration.toSeconds(loading)
      const watch = yield* Watcher
      watch(running)
      return inference(model.definition, running)
    }),
  )

const run = Effect.fnUntraced(function* (
  definition: Definition<Fields, Fields>,
  {
    platform,
    decoupled = false,
    keepsInputs = true,
  }: Pick<InstancesOptions<never, never>, "platform" | "decoupled" | "keepsInputs">,
  instances: ReadonlyArray<Instance>,
) {
  const { name, version, signature, maxBatchSize, batching } = definition
  const statistics = new Statistics()
  const scheduler = yield* Scheduler.make({
    model: name,
    instances,
    statistics,
    groupKey: Batch.groupKey(signature, maxBatchSize > 0),
    maxBatchSize: decoupled ? 1 : Math.max(1, maxBatchSize),
    preferredBatchSizes: decoupled ? [] : batching.preferredBatchSizes,
    maxQueueDelay: Duration.toMillis(batching.maxQueueDelay) * 1e6,
    maxQueueSize: batching.maxQueueSize,
  })
  const running: RunningModel = {
    name,
    version,
    platform,
    signature,
    maxBatchSize,
    decoupled,
    keepsInputs,
    batching,
    instances: instances.length,
    statistics,
    isReady: scheduler.isReady,
    pending: scheduler.pending,
    submit: scheduler.submit,
  }
  return running
})

/** The typed face of a running model: samples and batches in, samples and batches out. */
export const inference = <I extends Fields, O extends Fields>(
  definition: Definition<I, O>,
  model: RunningModel,
): Inference<I, O> => {
  const { name, signature, maxBatchSize, inputs, outputs } = definition
  const inputCodec = SampleCodec.make(inputs, signature.inputs)
  const outputCodec = SampleCodec.make(outputs, signature.outputs)
  const batching = maxBatchSize > 0

  const request = (tensors: ReadonlyArray<TypedTensor | undefined>, rows: number, options?: CallOptions) =>
    Effect.map(Clock.currentTimeMillis, (now): Request => ({
      id: options?.id ?? "",
      inputs: tensors,
      rows,
      parameters: options?.parameters ?? noParameters,
      deadline: options?.timeout === undefined ? undefined : now + Duration.toMillis(options.timeout),
    }))

  const wrongInput = ({ field, message }: SampleCodec.SampleError): InferenceError =>
    new InvalidRequest({ message: `input '${field}' of model '${name}': ${message}` })

  const wrongOutput = ({ field, message }: SampleCodec.SampleError): InferenceError =>
    new ExecutionFailed({ message: `output '${field}' of model '${name}': ${message}` })

  const agreeing = (tensors: Request["inputs"]) => {
    const disagreement = symbolMismatch(name, signature.inputs, tensors)
    return disagreement === undefined ? Effect.void : Effect.fail(new InvalidRequest({ message: disagreement }))
  }

  const decodeSample = (response: Response): Effect.Effect<Sample<O>, InferenceError> => {
    const tensors = batching ? response.outputs.map(withoutBatch) : response.outputs
    const decoded = outputCodec.decode(tensors)
    if (Result.isFailure(decoded)) return Effect.fail(wrongOutput(decoded.failure))
    // The codec has put exactly the fields of O into it, each decoded by its own Schema.
    return Effect.succeed(decoded.success as Sample<O>)
  }

  return {
    model,
    infer: Effect.fnUntraced(function* (sample, options) {
      const encoded = inputCodec.encode(sample, batching)
      if (Result.isFailure(encoded)) return yield* wrongInput(encoded.failure)
      yield* agreeing(encoded.success)
      return yield* decodeSample(yield* infer(model, yield* request(encoded.success, 1, options)))
    }),
    stream: (sample, options) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const encoded = inputCodec.encode(sample, batching)
          if (Result.isFailure(encoded)) return yield* wrongInput(encoded.failure)
          yield* agreeing(encoded.success)
          return Stream.mapEffect(stream(model, yield* request(encoded.success, 1, options)), decodeSample)
        }),
      ),
    inferBatch: Effect.fnUntraced(function* (batch, options) {
      const collected = collect(signature.inputs, batch)
      if (Result.isFailure(collected)) return yield* wrongInput(collected.failure)
      const { tensors, rows } = collected.success
      yield* agreeing(tensors)
      if (!batching) {
        if (rows !== 1) return yield* tooManyRows(name, rows, 1)
        const response = yield* infer(
          model,
          yield* request(
            tensors.map((tensor) => tensor && withoutBatch(tensor)),
            1,
            options,
          ),
        )
        return named(signature.outputs, response.outputs.map(withBatch)) as Batched<O>
      }
      if (rows > maxBatchSize) return yield* tooManyRows(name, rows, maxBatchSize)
      const response = yield* infer(model, yield* request(tensors, rows, options))
      return named(signature.outputs, response.outputs) as Batched<O>
    }),
  }
}

const tooManyRows = (model: string, rows: number, most: number) =>
  new InvalidRequest({ message: `inference request batch-size must be <= ${most} for '${model}', got ${rows}` })

/** Batched tensors by name into the order of the specs, all with the same number of rows. */
export const collect = (
  specs: ReadonlyArray<TensorSpec>,
  batch: object,
): Result.Result<
  { readonly tensors: ReadonlyArray<TypedTensor | undefined>; readonly rows: number },
  SampleCodec.SampleError
> => {
  const tensors: Array<TypedTensor | undefined> = []
  let rows: number | undefined
  for (const name of Object.keys(batch)) {
    if (!specs.some((spec) => spec.name === name)) return Result.fail({ field: name, message: "is not declared" })
  }
  for (const spec of specs) {
    const value: TypedTensor | undefined = Reflect.get(batch, spec.name)
    if (value === undefined) {
      if (!spec.optional) return Result.fail({ field: spec.name, message: "is missing" })
      tensors.push(undefined)
      continue
    }
    const wrong = SampleCodec.mismatch(spec, value, 1)
    if (wrong !== undefined) return Result.fail({ field: spec.name, message: `${wrong} after its batch dimension` })
    const [extent = 0] = value.shape
    rows ??= extent
    if (extent !== rows || extent < 1) {
      return Result.fail({ field: spec.name, message: `has ${extent} rows, expected ${Math.max(1, rows)}` })
    }
    tensors.push(value)
  }
  return Result.succeed({ tensors, rows: rows ?? 1 })
}

/** Tensors in the order of the specs, by name. */
export const named = (
  specs: ReadonlyArray<TensorSpec>,
  tensors: ReadonlyArray<TypedTensor | undefined>,
): Record<string, TypedTensor> => {
  const record: Record<string, TypedTensor> = {}
  for (const [index, spec] of specs.entries()) {
    const tensor = tensors[index]
    if (tensor !== undefined) record[spec.name] = tensor
  }
  return record
}

/** A batch of one: the tensor with a leading dimension of 1. */
export const withBatch = (tensor: TypedTensor): TypedTensor => reshape(tensor, [1, ...tensor.shape])

/** The only row of a batch of one. */
export const withoutBatch = (tensor: TypedTensor): TypedTensor => reshape(tensor, tensor.shape.slice(1))

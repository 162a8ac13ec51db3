/** Converts the warm-up samples of a configuration to the warm-ups of a model declaration. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect } from "effect"
import { join } from "node:path"
import { sizeProblem, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import * as WarmUpInput from "@nereid/core/internal/synthetic/SyntheticTensor"
import type { ModelConfig, ModelWarmup_Input } from "@nereid/protocol/model_config"
import { datatypeOf } from "../config/Declaration.ts"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"

/** A request, executed by itself, so often. */
export interface ModelWarmUp {
  readonly name: string
  /** The inputs of a row by their names. */
  readonly inputs: readonly [Readonly<Record<string, TypedTensor>>]
  readonly batchSize: number
  readonly count: number
}

/** Maximum bytes of a file with an input. */
const maxSampleBytes = 256 * 1024 * 1024

/** Reads all warm-ups in order; `path` is the model's directory. */
export const all = Effect.fn("ModelWarmUp.all")(function* (
  { name: model, maxBatchSize, modelWarmup, modelTransactionPolicy, input: inputs }: ModelConfig,
  path: string,
): Effect.fn.Return<ReadonlyArray<ModelWarmUp>, LoadFailure> {
  const all: Array<ModelWarmUp> = []
  for (const { name, inputs: given, batchSize, count } of modelWarmup) {
    const [rows, times, maxRows] = [Math.max(1, batchSize), Math.max(1, count), Math.max(1, maxBatchSize)]
    if (rows > maxRows) {
      const message = `warm-up '${name}' of model '${model}': batch_size must be <= ${maxRows}, but ${rows} was given`
      return yield* new LoadFailure({ message })
    }
    const sample: Record<string, TypedTensor> = {}
    for (const [input, setting] of Object.entries(given)) {
      const failed = (problem: string) =>
        new LoadFailure({ message: `warm-up '${name}' of model '${model}', input '${input}': ${problem}` })
      if (!inputs.some((other) => other.name === input)) return yield* failed("the model has no such input")
      const tensor = yield* Effect.mapError(tensorOf(setting, join(path, "warmup")), failed)
      const problem = sizeProblem(tensor)
      if (problem !== undefined) return yield* failed(problem)
      sample[input] = tensor
    }
    // A request to a decoupled model has one row.
    const isDecoupled = modelTransactionPolicy?.decoupled === true
    all.push({
      name,
      inputs: [sample],
      ...(isDecoupled ? { batchSize: 1, count: rows * times } : { batchSize: rows, count: times }),
    })
  }
  return all
})

const tensorOf = Effect.fnUntraced(function* (
  setting: ModelWarmup_Input,
  folder: string,
): Effect.fn.Return<TypedTensor, string> {
  const datatype = datatypeOf(setting)
  if (datatype === undefined) return yield* Effect.fail("it must specify 'data_type'")
  const shape = setting.dims.map(Number)
  if (!shape.every((extent) => extent >= 1)) return yield* Effect.fail(`its dims [${shape}] must be at least 1 each`)
  const { case: kind, value } = setting.inputDataType
  if (kind === "inputDataFile") {
    const bytes = yield* ModelDirectory.below(folder, value).pipe(
      Effect.flatMap((file) => ModelDirectory.contents(file, maxSampleBytes)),
      Effect.mapError(({ message }) => message),
    )
    return new TypedTensor(datatype, shape, bytes)
  }
  const spec = { name: "", datatype, dims: shape, optional: false }
  return yield* Effect.try({
    try: () => WarmUpInput.tensor(spec, shape, kind === "randomData" ? "random" : "zeros", random),
    catch: (error) => `cannot make a tensor ${datatype}[${shape}]: ${errorMessage(error)}`,
  })
})

/** The same at each start. */
const random = WarmUpInput.random()

/** What a configuration wants a model to be tried with before it takes requests, as samples of its declaration. */
import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { sizeProblem, TypedTensor } from "@nereid/core/TypedTensor"
import * as WarmUpInput from "@nereid/core/WarmUpInput"
import type { ModelConfig, ModelWarmup_Input } from "@nereid/protocol/model_config"
import { datatypeOf } from "./Declaration.ts"
import { LoadFailure, text } from "./LoadFailure.ts"
import * as ModelDirectory from "./ModelDirectory.ts"

/** The inputs of one request of one row, by their names. */
export type Sample = Readonly<Record<string, TypedTensor>>

/** The requests of all warm-ups in their order; `path` is that of the model's directory. */
export const samples = Effect.fnUntraced(function* (
  { name: model, modelWarmup, input: inputs }: ModelConfig,
  path: string,
): Effect.fn.Return<ReadonlyArray<Sample>, LoadFailure> {
  const all: Array<Sample> = []
  for (const { name, inputs: given, batchSize, count } of modelWarmup) {
    const sample: Record<string, TypedTensor> = {}
    for (const [input, setting] of Object.entries(given)) {
      const failed = (problem: string) =>
        new LoadFailure({ message: `warm-up '${name}' of model '${model}', input '${input}': ${problem}` })
      if (!inputs.some((other) => other.name === input)) return yield* failed("there is no such input")
      const tensor = yield* Effect.mapError(tensorOf(setting, join(path, "warmup")), failed)
      const problem = sizeProblem(tensor)
      if (problem !== undefined) return yield* failed(problem)
      sample[input] = tensor
    }
    // Rows of one request stand for requests of one row, which share batches.
    for (let times = Math.max(1, batchSize) * Math.max(1, count); times > 0; times--) all.push(sample)
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
    const file = yield* Effect.mapError(ModelDirectory.below(folder, value), ({ message }) => message)
    const bytes = yield* Effect.tryPromise({
      try: () => readFile(file),
      catch: (error) => `cannot read ${file}: ${text(error)}`,
    })
    return new TypedTensor(datatype, shape, bytes)
  }
  const spec = { name: "", datatype, dims: shape, optional: false }
  return WarmUpInput.tensor(spec, shape, kind === "randomData" ? "random" : "zeros", random)
})

/** The same at each start. */
const random = WarmUpInput.random()

/** Converts the warm-up samples of a configuration to the warm-ups of a model declaration. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Result } from "effect"
import { join } from "node:path"
import { errorPrefix } from "@nereid/core/internal/request/Request"
import { byteWidth, isDataType } from "@nereid/core/internal/tensor/DataType"
import { elementCount, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import * as WarmUpInput from "@nereid/core/internal/synthetic/SyntheticTensor"
import type { ModelInterface } from "@nereid/core/internal/wire/ModelInterface"
import * as Validation from "@nereid/core/internal/wire/Validation"
import type { WireRequest, WireTensor } from "@nereid/core/internal/wire/WireRequest"
import type { ModelConfig, ModelWarmup, ModelWarmup_Input } from "@nereid/protocol/model_config"
import { datatypeOf } from "../config/Declaration.ts"
import { invalid, type LoadFailure } from "../directory/LoadFailure.ts"
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

/** Reads all warm-ups in order; `path` is the model's directory. A sample of 0 rows is skipped, as in Triton. */
export const all = Effect.fn("ModelWarmUp.all")(function* (
  config: ModelConfig,
  path: string,
): Effect.fn.Return<ReadonlyArray<ModelWarmUp>, LoadFailure> {
  const all: Array<ModelWarmUp> = []
  const isDecoupled = config.modelTransactionPolicy?.decoupled === true
  for (const setting of config.modelWarmup) {
    const { batchSize: rows } = setting
    if (rows === 0) continue
    const inputs = yield* sampleOf(config, setting, join(path, "warmup"))
    if (rows > Math.max(1, config.maxBatchSize)) {
      const instance = `${config.instanceGroup[0]?.name ?? config.name}_0`
      const problem = `batch size ${rows} for '${instance}', max allowed is ${config.maxBatchSize}; `
      return yield* invalid(`failed to run warmup sample '${setting.name}': ${problem}`)
    }
    const count = Math.max(1, setting.count)
    // A request to a decoupled model has one row.
    all.push({
      name: setting.name,
      inputs: [inputs],
      ...(isDecoupled ? { batchSize: 1, count: count * rows } : { batchSize: rows, count }),
    })
  }
  return all
})

/** Reads the inputs of one row, and checks them as a request. The messages and their order are Triton's. */
const sampleOf = Effect.fnUntraced(function* (
  config: ModelConfig,
  { name, inputs }: ModelWarmup,
  folder: string,
): Effect.fn.Return<Readonly<Record<string, TypedTensor>>, LoadFailure> {
  const given = Object.entries(inputs)
  const variable = given.find(([, { dims }]) => dims.includes(-1n))
  if (variable !== undefined) {
    const rule = "warmup setting expects all variable-size dimensions are specified for input"
    return yield* invalid(`${rule} '${variable[0]}'`)
  }
  const tensors = yield* Effect.forEach(given, ([input, setting]) => tensorOf(input, setting, folder))
  const isDeclared = (input: string) => config.input.some((other) => other.name === input)
  const rowShape = (shape: ReadonlyArray<number>) => (config.maxBatchSize > 0 ? [1, ...shape] : shape)
  const request: WireRequest = {
    modelName: config.name,
    modelVersion: "",
    id: "",
    parameters: {},
    outputs: [],
    inputs: tensors.flatMap((tensor) =>
      isDeclared(tensor.name) ? [{ ...tensor, shape: rowShape(tensor.shape) }] : [],
    ),
  }
  const validated = Validation.validate(interfaceOf(config), request, undefined)
  if (Result.isFailure(validated)) return yield* invalid(validated.failure.message)
  const unknown = tensors.find((tensor) => !isDeclared(tensor.name))
  if (unknown !== undefined) {
    return yield* invalid(
      `warm-up '${name}' of model '${config.name}', input '${unknown.name}': the model has no such input`,
    )
  }
  return Object.fromEntries(
    tensors.flatMap(({ name, datatype, shape, bytes }) =>
      isDataType(datatype) ? [[name, new TypedTensor(datatype, shape, bytes)]] : [],
    ),
  )
})

const interfaceOf = ({ name, input, maxBatchSize }: ModelConfig): ModelInterface => ({
  name,
  version: "",
  maxBatchSize,
  signature: {
    inputs: input.map((one) => ({
      name: one.name,
      // Checked before: no configuration without a datatype comes here.
      datatype: datatypeOf(one) ?? "FP32",
      dims: one.dims.map(Number),
      optional: one.optional,
    })),
    outputs: [],
  },
})

const tensorOf = Effect.fnUntraced(function* (
  name: string,
  setting: ModelWarmup_Input,
  folder: string,
): Effect.fn.Return<WireTensor, LoadFailure> {
  const { case: kind, value } = setting.inputDataType
  const shape = setting.dims.map(Number)
  const datatype = datatypeOf(setting)
  if (kind === undefined) {
    return yield* invalid(`${errorPrefix(noId)}warmup setting expects input '${name}' to have input_data_type set`)
  }
  if (kind === "inputDataFile") {
    const file = yield* ModelDirectory.below(folder, value)
    const bytes = yield* ModelDirectory.contents(file, maxSampleBytes)
    const width = datatype === undefined ? 4 : byteWidth(datatype)
    const expected = width === undefined ? bytes.length : elementCount(shape) * width
    if (expected <= bytes.length) {
      return { name, datatype: datatype ?? noType, shape, bytes: bytes.subarray(0, Math.max(0, expected)) }
    }
    return yield* invalid(
      `${errorPrefix(noId)}warmup setting expects ${expected} bytes, but the data provided from ${value}only has ${bytes.length} bytes`,
    )
  }
  // The check of the request refuses it.
  if (datatype === undefined || shape.some((extent) => extent < 1)) {
    return { name, datatype: datatype ?? noType, shape, bytes: new Uint8Array() }
  }
  const spec = { name, datatype, dims: shape, optional: false }
  const { bytes } = yield* Effect.try({
    try: () => WarmUpInput.tensor(spec, shape, kind === "randomData" ? "random" : "zeros", random),
    catch: (error) => invalid(`cannot make a tensor ${datatype}[${shape}] for input '${name}': ${errorMessage(error)}`),
  })
  return { name, datatype, shape, bytes }
})

const noId = { id: "" }

/** Triton's name of a datatype that is not set. */
const noType = "<invalid>"

/** The same at each start. */
const random = WarmUpInput.random()

/** The warm-up of a model in code, in the form of a configuration. */
import { create } from "@bufbuild/protobuf"
import { Result } from "effect"
import * as Defaults from "@nereid/core/internal/model/Defaults"
import type { Definition, Input } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import * as TypedCalls from "@nereid/core/internal/call/TypedCalls"
import { isSamples, valuesOf, warmUpList, type WarmUpOptions } from "@nereid/core/internal/model/WarmUpOptions"
import * as WarmUpInput from "@nereid/core/internal/synthetic/SyntheticTensor"
import {
  DataType,
  type ModelWarmup,
  type ModelWarmup_Input,
  ModelWarmup_InputSchema,
  ModelWarmupSchema,
} from "@nereid/protocol/model_config"
import type { ModelFileContent } from "./ModelFileContent.ts"

export interface ExportedWarmUp {
  readonly messages: ReadonlyArray<ModelWarmup>
  readonly files: ReadonlyArray<ModelFileContent>
  readonly notes: ReadonlyArray<string>
}

export const noWarmUp: ExportedWarmUp = { messages: [], files: [], notes: [] }

export const make = (definition: Definition<Fields, Fields>, running: RunningModel): ExportedWarmUp => {
  const options = warmUpList(running.description.warmUp)
  const all = options.map((one, index) => exported(definition, running, one, index === 0 ? "" : `${index}_`))
  return {
    messages: all.flatMap(({ messages }) => messages),
    files: all.flatMap(({ files }) => files),
    notes: [...new Set(all.flatMap(({ notes }) => notes))],
  }
}

/** Exports a warm-up under names with this prefix. */
const exported = (
  definition: Definition<Fields, Fields>,
  running: RunningModel,
  options: WarmUpOptions<Fields>,
  prefix: string,
): ExportedWarmUp => {
  const { inputs = "zeros", batchSize = 1, count = 1, parameters = {} } = options
  const lost = [
    ...(Object.keys(parameters).length > 0 ? ["its parameters"] : []),
    ...(options.timeout === undefined ? [] : ["its timeout"]),
    ...(options.onFailure === "ignore" ? ['onFailure: "ignore"'] : []),
  ]
  const notes = lost.length > 0 ? [`the warm-up of a configuration cannot express ${lost.join(", ")}`] : []
  const batchSizes = typeof batchSize === "number" ? [batchSize] : batchSize
  if (isSamples(inputs)) {
    return { ...samples(definition, running, inputs, prefix, { batchSizes, count }), notes }
  }
  const sizes: WarmUpInput.Sizes = options.sizes ?? {}
  // A file requires them all.
  const tensors = running.description.signature.inputs.map((spec): [string, ModelWarmup_Input] => {
    const dims = WarmUpInput.shape(spec.dims, sizes)
    const values = valuesOf(inputs, { name: spec.name, optional: false })
    return [spec.name, input(spec, dims, { case: values === "random" ? "randomData" : "zeroData", value: true })]
  })
  const messages = batchSizes.map((batchSize) =>
    create(ModelWarmupSchema, {
      name: `${prefix}${typeof inputs === "string" ? inputs : "synthetic"}_${batchSize}`,
      batchSize,
      count,
      inputs: Object.fromEntries(tensors),
    }),
  )
  return { messages, files: [], notes }
}

/** Each a request whose rows are all the same, and whose tensors are files. */
const samples = (
  definition: Definition<Fields, Fields>,
  running: RunningModel,
  given: ReadonlyArray<Input<Fields>>,
  prefix: string,
  { batchSizes, count }: { readonly batchSizes: ReadonlyArray<number>; readonly count: number },
): Pick<ExportedWarmUp, "messages" | "files"> => {
  const calls = TypedCalls.make(definition, running)
  const fill = Defaults.filler(running.description.signature, running.description.maxBatchSize > 0)
  const files: Array<ModelFileContent> = []
  const messages = given.flatMap((sample, index) => {
    const request = calls.samples.request(sample, undefined, 0)
    // Unreachable for a running model: its warm-up would have failed.
    if (Result.isFailure(request)) return []
    const { inputs: tensors } = fill === undefined ? request.success : fill(request.success)
    const inputs = tensors.flatMap((tensor, position): ReadonlyArray<[string, ModelWarmup_Input]> => {
      const spec = running.description.signature.inputs[position]
      if (tensor === undefined || spec === undefined) return []
      const file = `${prefix}sample${index}_${position}`
      files.push({ path: `warmup/${file}`, content: tensor.bytes })
      const dims = running.description.maxBatchSize > 0 ? tensor.shape.slice(1) : tensor.shape
      return [[spec.name, input(spec, dims, { case: "inputDataFile", value: file })]]
    })
    return batchSizes.map((batchSize) => {
      const name = `${prefix}sample_${index}${batchSizes.length > 1 ? `_${batchSize}` : ""}`
      return create(ModelWarmupSchema, { name, batchSize, count, inputs: Object.fromEntries(inputs) })
    })
  })
  return { messages, files }
}

const input = (
  { datatype }: TensorSpec,
  dims: ReadonlyArray<number>,
  inputDataType: ModelWarmup_Input["inputDataType"],
): ModelWarmup_Input =>
  create(ModelWarmup_InputSchema, {
    dataType: datatype === "BYTES" ? DataType.TYPE_STRING : DataType[`TYPE_${datatype}`],
    dims: dims.map(BigInt),
    inputDataType,
  })

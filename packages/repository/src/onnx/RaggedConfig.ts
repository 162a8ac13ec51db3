/**
 * Converts a configuration with ragged batches to the form of its model file: without the implicit batch dimension,
 * with flat tensors for concatenated inputs, and with the inputs generated from them.
 */
import { create } from "@bufbuild/protobuf"
import type { FlatOptions } from "@nereid/core/internal/batch/FlatBatch"
import { BatchInput_Kind, type ModelConfig, type ModelInput, ModelInputSchema } from "@nereid/protocol/model_config"

export const inFile = (config: ModelConfig, { inputs, batchOutputs = {} }: FlatOptions): ModelConfig => {
  const batchInputs = config.batchInput.flatMap(({ kind, targetName, dataType }) => {
    const dims = kind === BatchInput_Kind.BATCH_ITEM_SHAPE ? [-1n, -1n] : [-1n]
    return targetName.map((name) => create(ModelInputSchema, { name, dataType, dims }))
  })
  return {
    ...config,
    maxBatchSize: 0,
    input: [
      ...config.input.map((input) => ({ ...input, ...(inputs.includes(input.name) ? flat : withRows(input)) })),
      ...batchInputs,
    ],
    output: config.output.map((output) => ({
      ...output,
      ...(Object.hasOwn(batchOutputs, output.name) ? flat : withRows(output)),
    })),
  }
}

const flat = { dims: [-1n], reshape: undefined }

const withRows = ({ dims, reshape }: Pick<ModelInput, "dims" | "reshape">) => ({
  dims: [-1n, ...(reshape?.shape ?? dims)],
  reshape: undefined,
})

/** A configuration with sequences in the form of its model file: control and state tensors are inputs and outputs. */
import { create } from "@bufbuild/protobuf"
import type { Sequencing } from "@nereid/core/internal/model/Sequencing"
import type { FileSignature } from "@nereid/onnx/internal/OnnxFile"
import { DataTypeSchema, type ModelConfig, ModelInputSchema, ModelOutputSchema } from "@nereid/protocol/model_config"
import { configDataType } from "../config/ConfigCompletion.ts"
import { failure, invalid, type LoadFailure } from "../directory/LoadFailure.ts"

/** Adds the tensors that callers do not see. */
export const inFile = (config: ModelConfig, { controls, states }: Sequencing): ModelConfig => ({
  ...config,
  input: [
    ...config.input,
    ...controls.map(({ name, datatype }) =>
      create(ModelInputSchema, { name, dataType: configDataType(datatype), dims: [1n] }),
    ),
    ...states.map(({ input: name, datatype, dims }) =>
      create(ModelInputSchema, { name, dataType: configDataType(datatype), dims: dims.map(BigInt) }),
    ),
  ],
  output: [
    ...config.output,
    ...states
      .filter(({ output }) => !config.output.some(({ name }) => name === output))
      .map(({ output: name, datatype, dims }) =>
        create(ModelOutputSchema, { name, dataType: configDataType(datatype), dims: dims.map(BigInt) }),
      ),
  ],
})

/** The first disagreement of the control tensors with the file, in Triton's words; undefined for none. */
export const problem = (
  { name: model, input, maxBatchSize }: ModelConfig,
  { controls, states }: Sequencing,
  { inputs, defaultedInputs }: FileSignature,
): LoadFailure | undefined => {
  for (const { name, datatype } of controls) {
    const found = [...inputs, ...defaultedInputs].find((other) => other.name === name)
    if (found === undefined) {
      return failure(`configuration specified sequence control '${name}', but model does not provide that input`)
    }
    const subject = `unable to load model '${model}', sequence control '${name}'`
    const dims = maxBatchSize > 0 ? found.dims?.slice(1) : found.dims
    if (dims?.length !== 1 || dims[0] !== 1) {
      return invalid(`${subject} in model has dims ${print(dims ?? [])} but dims [1] is expected`)
    }
    if (found.datatype === datatype) continue
    const expected = found.datatype === undefined ? found.type : found.datatype
    const given = DataTypeSchema.value[configDataType(datatype)]?.name
    return invalid(
      `${subject}, the model expects data-type ${expected} but the model configuration specifies data-type ${given}`,
    )
  }
  const expected = input.filter(({ optional }) => !optional).length + controls.length + states.length
  return expected === inputs.length
    ? undefined
    : invalid(
        `unable to load model '${model}', configuration expects ${expected} inputs, model provides ${inputs.length}`,
      )
}

const print = (dims: ReadonlyArray<number | string>) =>
  `[${dims.map((dim) => (typeof dim === "number" ? dim : -1)).join(",")}]`

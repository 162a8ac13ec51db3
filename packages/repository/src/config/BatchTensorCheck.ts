/** Validates `batch_input` and `batch_output` of a configuration. Part of TensorCheck.ts. */
import {
  type BatchInput,
  BatchInput_KindSchema as InputKind,
  type BatchOutput,
  BatchOutput_KindSchema as OutputKind,
  DataType,
  type ModelConfig,
} from "@nereid/protocol/model_config"

export const problem = ({ input, output, batchInput, batchOutput }: ModelConfig): string | undefined => {
  const inputs = new Set(input.map(({ name }) => name))
  const outputs = new Set(output.map(({ name }) => name))
  for (const one of batchInput) {
    const found = inputProblem(one, inputs)
    if (found !== undefined) return found
  }
  for (const one of batchOutput) {
    const found = outputProblem(one, inputs, outputs)
    if (found !== undefined) return found
  }
  return undefined
}

const inputProblem = ({ kind, dataType, sourceInput }: BatchInput, inputs: ReadonlySet<string>): string | undefined => {
  const name = InputKind.value[kind]?.name
  if (name === undefined) return `unknown batch input kind '${kind}'`
  if (sourceInput.length !== 1) return `batch input kind '${name}' expects 1 source input, got ${sourceInput.length}`
  if (dataType !== DataType.TYPE_INT32 && dataType !== DataType.TYPE_FP32) {
    return "batch input data type must be TYPE_INT32 or TYPE_FP32"
  }
  return unknownSource(sourceInput, inputs)
}

const outputProblem = (
  { kind, targetName, sourceInput }: BatchOutput,
  inputs: ReadonlySet<string>,
  outputs: ReadonlySet<string>,
): string | undefined => {
  const name = OutputKind.value[kind]?.name
  if (name === undefined) return `unknown batch output kind '${kind}'`
  if (sourceInput.length !== 1) return `batch output kind '${name}' expects 1 source input, got ${sourceInput.length}`
  const found = unknownSource(sourceInput, inputs)
  if (found !== undefined) return found
  for (const [index, target] of targetName.entries()) {
    if (!outputs.has(target)) return `unknown target output name '${target}'`
    if (targetName.indexOf(target) < index) return `target output name '${target}' can only be specified once`
  }
  return undefined
}

const unknownSource = (sources: ReadonlyArray<string>, inputs: ReadonlySet<string>): string | undefined => {
  const unknown = sources.find((name) => !inputs.has(name))
  return unknown === undefined ? undefined : `unknown source input name '${unknown}'`
}

/** Checks of exported sequences. SequenceMove.ts exports and imports them. */
import { type InferenceError, InvalidRequest, Unsupported } from "../error/InferenceError.ts"
import type { Sequencing, StateTensor } from "../model/Sequencing.ts"
import type { SequenceExport } from "../request/SequenceExport.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import { sizeProblem, type TypedTensor } from "../tensor/TypedTensor.ts"

/** Version of the exported data. */
export const format = 1

/** The outcome of the import of one sequence. */
export interface ImportedSequence {
  readonly id: SequenceId
  /** Why it was not taken; undefined if it was. */
  readonly problem: InferenceError | undefined
}

/** Names, datatypes and dims of the state tensors: `SUM_IN>SUM_OUT:FP32[-1,4];…`. */
export const fingerprint = ({ states }: Sequencing, batches: boolean): string =>
  `${batches ? "batch" : "single"}:${states
    .map(({ input, output, datatype, dims }) => `${input}>${output}:${datatype}[${dims.join()}]`)
    .join(";")}`

/** Why no sequence of the model can be exported or imported; undefined if the scheduler holds all state. */
export const modelProblem = (model: string, { states, isIterative }: Sequencing): Unsupported | undefined => {
  if (isIterative) {
    return new Unsupported({ message: `sequences of model '${model}' cannot be moved: each is a single request` })
  }
  if (states.length > 0) return undefined
  return new Unsupported({
    message: `sequences of model '${model}' cannot be moved: it declares no state tensors, so its state is unknown`,
  })
}

/** Why an export does not fit a model; undefined if it does. */
export const exportProblem = (
  exported: SequenceExport,
  expected: Pick<SequenceExport, "model" | "states">,
): InvalidRequest | undefined => {
  const mismatch = (field: string, value: string | number, wanted: string | number) =>
    new InvalidRequest({ message: `exported sequences have ${field} '${value}', expected '${wanted}'` })
  if (exported.format !== format) return mismatch("format", exported.format, format)
  if (exported.model !== expected.model) return mismatch("model", exported.model, expected.model)
  return exported.states === expected.states ? undefined : mismatch("states", exported.states, expected.states)
}

/** Why state tensors do not fit the declared states; undefined if they do. */
export const tensorsProblem = (
  tensors: ReadonlyArray<TypedTensor>,
  states: ReadonlyArray<StateTensor>,
  batches: boolean,
): string | undefined => {
  if (tensors.length !== states.length) return `has ${tensors.length} state tensors, expected ${states.length}`
  for (const [index, { input, datatype, dims }] of states.entries()) {
    const tensor = tensors[index]
    if (tensor === undefined) continue
    const wanted = batches ? [1, ...dims] : dims
    const fits =
      tensor.datatype === datatype &&
      tensor.shape.length === wanted.length &&
      tensor.shape.every((extent, axis) => isExtent(extent) && (wanted[axis] === -1 || wanted[axis] === extent))
    if (!fits) return `state '${input}' is ${tensor.datatype}[${tensor.shape}], expected ${datatype}[${wanted}]`
    const problem = sizeProblem(tensor)
    if (problem !== undefined) return `state '${input}': ${problem}`
  }
  return undefined
}

const isExtent = (extent: number): boolean => Number.isSafeInteger(extent) && extent >= 0

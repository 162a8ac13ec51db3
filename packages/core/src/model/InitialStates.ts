/** The initial state tensors of sequences, made by the function of the declaration when the model is provided. */
import { Result } from "effect"
import type { Definition } from "./Definition.ts"
import type { Fields } from "./Field.ts"
import * as SampleCodec from "./SampleCodec.ts"
import type { Sequencing } from "./Sequencing.ts"

/**
 * The sequencing with its initial states. Its states are in the order of the declaration.
 * @throws TypeError if a state does not fit its declaration
 */
export const complete = ({ name, state }: Definition<Fields, Fields>, sequencing: Sequencing): Sequencing => {
  if (state?._tag !== "tensors" || state.initial === undefined) return sequencing
  const specs = sequencing.states.map(({ input, datatype, dims }) => ({ name: input, datatype, dims, optional: false }))
  const encoded = SampleCodec.make(state.fields, specs).encode(state.initial(), false)
  if (Result.isFailure(encoded)) {
    const { field, message } = encoded.failure
    throw new TypeError(`Model "${name}": the initial state does not fit '${field}': ${message}.`)
  }
  const tensors = encoded.success
  return { ...sequencing, states: sequencing.states.map((tensor, index) => ({ ...tensor, initial: tensors[index] })) }
}

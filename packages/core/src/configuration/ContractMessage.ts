/** The extension of a model's metadata: its declared contract. Made once per model, at the first request for it. */
import * as ContractDocument from "../contract/ContractDocument.ts"
import type { ModelDescription } from "../running/ModelDescription.ts"

export type ContractMessage = ReturnType<typeof ContractDocument.make>

const made = new WeakMap<ModelDescription, { readonly message: ContractMessage }>()

/** Undefined for a model that metadata and configuration describe completely. */
export const make = (description: ModelDescription): ContractMessage => {
  const known = made.get(description)
  if (known !== undefined) return known.message
  const message = ContractDocument.make(description)
  made.set(description, { message })
  return message
}

/** The extension of a model's metadata: its declared contract. Made at the first request for it, and kept. */
import * as ContractDocument from "../contract/ContractDocument.ts"
import type { ModelDescription } from "../running/ModelDescription.ts"

export type ContractMessage = ReturnType<typeof ContractDocument.make>

interface Made {
  readonly message: ContractMessage
  /** That of the description then, which an ensemble may change. */
  readonly maxIdle: number | undefined
}

const made = new WeakMap<ModelDescription, Made>()

/** Undefined for a model that metadata and configuration describe completely. */
export const make = (description: ModelDescription): ContractMessage => {
  const known = made.get(description)
  const maxIdle = description.requiredSequence?.maxIdle
  if (known !== undefined && known.maxIdle === maxIdle) return known.message
  const message = ContractDocument.make(description)
  made.set(description, { message, maxIdle })
  return message
}

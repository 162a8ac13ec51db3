/** The value of one input in the form, or the reason why it cannot be sent. */
import { useLayoutEffect, useMemo } from "preact/hooks"
import { attempt, Invalid } from "../Invalid.ts"
import type { Tensor } from "../tensor/Tensor.ts"

export interface Entered {
  readonly tensor: Tensor
  /** Of an element of BYTES that is a file. */
  readonly fileName?: string
}

export type Entry = Entered | Invalid

export interface EntryProps {
  readonly onEntry: (entry: Entry) => void
}

/** Tells the form what its input has, whenever that changes; returns the reason if it cannot be sent. */
export const useEntry = (
  onEntry: (entry: Entry) => void,
  read: () => Entered | Tensor,
  inputs: ReadonlyArray<unknown>,
): Invalid | undefined => {
  const entry = useMemo(() => {
    const value = attempt(read)
    return value instanceof Invalid || "tensor" in value ? value : { tensor: value }
  }, inputs)
  // Before the next event: the user may type and run within one frame.
  useLayoutEffect(() => onEntry(entry), [entry])
  return entry instanceof Invalid ? entry : undefined
}

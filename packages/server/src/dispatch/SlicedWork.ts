/**
 * Long computations for responses, such as classes of a large output, in slices between the turns of the event loop.
 * All of them together take one slice per turn, so that many of them do not delay other requests either.
 */
import { constVoid } from "effect/Function"
import type { Cancel } from "@nereid/core/internal/request/Request"

interface Work {
  /** Does one slice, and returns whether it was the last. */
  readonly step: () => boolean
}

const pending = new Set<Work>()

let isScheduled = false

/**
 * Runs the first slice at once and further ones in later turns, then calls `done`, never after the returned cancel.
 * The caller is called before this returns if one slice is enough.
 */
export const run = <A>(slices: Generator<undefined, A>, done: (result: A) => void): Cancel => {
  const step = (): boolean => {
    const { done: isLast, value } = slices.next()
    if (isLast === true) done(value)
    return isLast === true
  }
  if (step()) return constVoid
  const work = { step }
  pending.add(work)
  schedule()
  return () => void pending.delete(work)
}

const schedule = (): void => {
  if (isScheduled) return
  isScheduled = true
  setImmediate(turn)
}

/** The oldest work does a slice and goes to the end. */
const turn = (): void => {
  isScheduled = false
  const [work] = pending
  if (work === undefined) return
  pending.delete(work)
  pending.add(work)
  if (work.step()) pending.delete(work)
  if (pending.size > 0) schedule()
}

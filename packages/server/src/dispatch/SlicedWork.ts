/**
 * Long computations for responses, such as classes of a large output, in slices between the turns of the event loop.
 * All of them together take one slice per turn, so that many of them do not delay other requests either.
 */
import { Result } from "effect"
import { constVoid } from "effect/Function"
import type { Cancel } from "@nereid/core/internal/request/Request"

interface Work {
  /** Does one slice, and returns whether it was the last. */
  readonly step: () => boolean
}

const pending = new Set<Work>()

let isScheduled = false

/**
 * Runs the first slice at once and further ones in later turns, then calls `done` with the result or `failed` with the
 * error that a slice throws, once, never after the returned cancel. The call is before this returns if the first slice
 * is the last.
 */
export const run = <A>(
  slices: Generator<undefined, A>,
  done: (result: A) => void,
  failed: (error: unknown) => void,
): Cancel => {
  const step = (): boolean => {
    const next = Result.try({ try: () => slices.next(), catch: (error) => error })
    if (Result.isFailure(next)) failed(next.failure)
    else if (next.success.done === true) done(next.success.value)
    else return false
    return true
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
  let isOver = true
  try {
    isOver = work.step()
  } finally {
    // A callback that throws delays no other work.
    if (isOver) pending.delete(work)
    if (pending.size > 0) schedule()
  }
}

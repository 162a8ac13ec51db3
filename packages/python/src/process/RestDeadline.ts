/**
 * The deadline of a request that goes on after its batch. Until then the scheduler watches it, which the request has
 * left.
 */
import { Result } from "effect"
import { constVoid } from "effect/Function"
import { DeadlineExceeded } from "@nereid/core/Errors"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import { errorPrefix, type Request, type Rest } from "@nereid/core/internal/request/Request"

/** Timers of Node count up to there. */
const maxMillis = 2 ** 31 - 1

/** The same rest, which ends at the deadline of the request. */
export const watch = (request: Request, rest: Rest): Rest => {
  const { deadline } = request
  if (deadline === undefined) return rest
  return (reply) => {
    let isOver = false
    let cancel = constVoid
    const onTimeout = () => {
      cancel()
      isOver = true
      reply(Result.fail(new DeadlineExceeded({ message: `${errorPrefix(request)}the deadline has passed` })))
    }
    const millis = Math.min(maxMillis, Math.max(0, deadline - MonotonicTime.millis()))
    const timer = setTimeout(onTimeout, millis)
    cancel = rest((outcome) => {
      clearTimeout(timer)
      if (!isOver) reply(outcome)
    })
    return () => {
      clearTimeout(timer)
      cancel()
    }
  }
}

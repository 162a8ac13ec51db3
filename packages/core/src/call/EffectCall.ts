/** Plain calls as effects. PromiseCall.ts has them as promises. */
import { Clock, Effect } from "effect"
import * as MonotonicTime from "../request/MonotonicTime.ts"
import type { Cancel } from "../request/Request.ts"
import { callerOf, type CallerService } from "./Caller.ts"
import type { TypedReply } from "./TypedCalls.ts"

/** A call as an effect, which cancels it when it is interrupted. */
export const toEffect = <A, E>(
  call: (now: number, caller: CallerService | undefined, reply: TypedReply<A, E>) => Cancel,
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) => {
    const caller = callerOf(fiber)
    const clock = fiber.getRef(Clock.Clock)
    return Effect.callback((resume) =>
      Effect.sync(call(MonotonicTime.millis(clock), caller, (outcome) => resume(Effect.fromResult(outcome)))),
    )
  })

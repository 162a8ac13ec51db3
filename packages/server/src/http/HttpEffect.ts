/** Responses that wait for an effect, which runs to its end, also if the connection closes. */
import { Effect, type Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { HttpCall } from "./HttpCall.ts"

/** A defect ends the request as one of the route itself does. */
export const respond = <A>(
  { guard }: Pick<HttpCall, "guard">,
  effect: Effect.Effect<A, InferenceError>,
  send: (result: Result.Result<A, InferenceError>) => void,
): void =>
  void Effect.runPromise(Effect.result(effect)).then(
    (result) => guard(() => send(result)),
    (defect) =>
      guard(() => {
        throw defect
      }),
  )

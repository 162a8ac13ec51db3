/** Why a server stops, for the text that it prints: a clause such as "because a model cannot recover". */
import { Context } from "effect"

/** Returns the reason, once there is one. Default: none, and the server names the signal that stops the program. */
export const StopReason = Context.Reference<() => string | undefined>("@nereid/server/StopReason", {
  defaultValue: () => () => undefined,
})

/** The text of what an effect failed with or died of. */
import { Cause } from "effect"
import { errorMessage } from "./ErrorMessage.ts"

export const causeMessage = (cause: Cause.Cause<unknown>): string => errorMessage(Cause.squash(cause))

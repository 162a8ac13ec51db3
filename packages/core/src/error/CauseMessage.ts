/** The message of an effect's failure or defect. */
import { Cause } from "effect"
import { errorMessage } from "./ErrorMessage.ts"

export const causeMessage = (cause: Cause.Cause<unknown>): string => errorMessage(Cause.squash(cause))

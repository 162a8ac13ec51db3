/** Failures of commands, as their users are told of them. */
import { Predicate } from "effect"
import { CliError } from "effect/cli"

/** Those whose message says all: where in our code they come from is nothing to their reader. */
const told = ["ServeError", "ModuleError", "OnnxLoadError", "ExportError"]

/** Those of layers that ask a server what its model is. */
const verification = ["ContractMismatch", "Unavailable", "ModelNotFound", "ModelNotReady", "DeadlineExceeded"]

/** In one line. Other failures, such as those of a user's own layers, are reported with their stack and their causes. */
export const inOneLine = (error: unknown): unknown =>
  [...told, ...verification].some((tag) => Predicate.isTagged(error, tag))
    ? new CliError.UserError({ cause: error })
    : error

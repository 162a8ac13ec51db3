/** Failures of commands, as their users see them. */
import { Predicate } from "effect"
import { CliError } from "effect/cli"

/** Tags of errors that are printed without a stack: their messages are complete. */
const oneLineErrors = ["ServeError", "ModuleError", "OnnxLoadError", "WarmUpFailed", "ExportError"]

/** Tags of errors of clients that verify their models. */
const verificationErrors = ["ContractMismatch", "Unavailable", "ModelNotFound", "ModelNotReady", "DeadlineExceeded"]

/** Formats a known error in one line. Other errors, such as those of a user's layers, keep their stack and causes. */
export const inOneLine = (error: unknown): unknown =>
  [...oneLineErrors, ...verificationErrors].some((tag) => Predicate.isTagged(error, tag))
    ? new CliError.UserError({ cause: error })
    : error

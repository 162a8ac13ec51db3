/** Failures of commands, as their users are told of them. */
import { Predicate } from "effect"
import { CliError } from "effect/cli"

/** Those whose message says all: where in our code they come from is nothing to their reader. */
const told = ["ServeError", "ModuleError", "OnnxLoadError", "ExportError"]

/** In one line. Other failures, such as those of a user's own layers, are reported with their stack and their causes. */
export const inOneLine = (error: unknown): unknown =>
  told.some((tag) => Predicate.isTagged(error, tag)) ? new CliError.UserError({ cause: error }) : error

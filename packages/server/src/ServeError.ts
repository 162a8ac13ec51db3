/** Why a server could not start. */
import { Data } from "effect"

export class ServeError extends Data.TaggedError("ServeError")<{ readonly message: string }> {}

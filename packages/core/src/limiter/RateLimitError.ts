/** The resources of an instance, compared with those that the rate limiter has. */
import { Data } from "effect"

/**
 * An instance could never execute, or names a resource otherwise than another instance does. A defect of the layer of a
 * model in code; a model of a repository does not load.
 */
export class RateLimitError extends Data.TaggedError("RateLimitError")<{ readonly message: string }> {}

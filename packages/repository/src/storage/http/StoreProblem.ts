/** Why a request to an object store, or to a source of its credentials, has no result. Never contains credentials. */
import { Data } from "effect"

export class StoreProblem extends Data.TaggedError("StoreProblem")<{
  /**
   * `unreachable`: no definite answer, because of a connection, a timeout or an overload. `denied`: credentials are
   * missing, wrong or expired. `missing`: the object does not exist. `changed`: the object is not the one of the
   * listing any more. `failed`: anything else, such as contents with a wrong checksum.
   */
  readonly kind: "unreachable" | "denied" | "missing" | "changed" | "failed"
  /** Name of the error: from the store, such as `NoSuchBucket`, from the system, such as `ECONNREFUSED`, or our own. */
  readonly code: string
  readonly message: string
  /** Milliseconds after which the store wants a retry. */
  readonly retryAfter?: number
  /** Region of the bucket, if the request was for another one. */
  readonly region?: string
}> {}

/** The reason as Triton writes it. */
export const reason = ({ code, message }: StoreProblem): string => `${code}, error message: ${message}`

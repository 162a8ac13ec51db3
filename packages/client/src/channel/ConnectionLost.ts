/**
 * The message for a server that cannot be reached, or not any more: its address and the socket's error.
 */
import { address, type Endpoint } from "./Endpoint.ts"

export const connectionLost = (endpoint: Endpoint, connected: boolean, error: unknown): string => {
  const problem = connected ? `the connection to ${address(endpoint)} was lost` : `cannot reach ${address(endpoint)}`
  const cause = reason(error)
  return cause === "" ? problem : `${problem}: ${cause}`
}

/**
 * A host with several addresses fails with one error for each, in one without a message; a stream that its session
 * takes down has the session's error as its cause.
 */
const reason = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reason).join(", ")
  if (!(error instanceof Error)) return ""
  return error.cause instanceof Error ? reason(error.cause) : error.message
}

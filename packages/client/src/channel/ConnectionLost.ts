/**
 * What to say of a server that cannot be reached, or not any more: its address and what the socket said.
 */
import { address, type Endpoint } from "./Endpoint.ts"

export const connectionLost = (endpoint: Endpoint, connected: boolean, error: unknown): string => {
  const what = connected ? `the connection to ${address(endpoint)} was lost` : `cannot reach ${address(endpoint)}`
  const why = reason(error)
  return why === "" ? what : `${what}: ${why}`
}

/**
 * A host with several addresses fails with one error for each, in one without a message; a stream that its session takes
 * down has the session's error as its cause.
 */
const reason = (error: unknown): string => {
  if (error instanceof AggregateError) return error.errors.map(reason).join(", ")
  if (!(error instanceof Error)) return ""
  return error.cause instanceof Error ? reason(error.cause) : error.message
}

/**
 * The message for a server that cannot be reached, or not any more: its address and the socket's error.
 */
import { address, type ServerUrl } from "@nereid/core/internal/wire/ServerUrl"

export const connectionLost = (endpoint: ServerUrl, connected: boolean, error: unknown): string => {
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
  return error.cause instanceof Error ? reason(error.cause) : (tlsReason(error.message) ?? error.message)
}

/** OpenSSL writes `<thread>:error:<code>:<library>:<function>:<reason>:<file>:<line>:`. */
const openSslError = /:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):/

/** A server without TLS answers the handshake with bytes that are not a TLS record. */
const noTlsRecord: ReadonlyArray<string> = ["wrong version number", "packet length too long"]

const tlsReason = (message: string): string | undefined => {
  const [, reason] = openSslError.exec(message) ?? []
  if (reason === undefined) return undefined
  return `TLS failed (${reason})${noTlsRecord.includes(reason) ? "; the server may not use TLS" : ""}`
}

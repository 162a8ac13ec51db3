/** The HTTP/2 connections of a stopping port, whatever implements them. */
import type { Http2Session } from "./Http2Session.ts"

/** Time in a stop for the first requests of the last streams, in milliseconds. */
const firstRequestMillis = 1_000

/** Asks the clients to leave. Calls `onDrained` once no client can begin further calls. */
export const drain = (sessions: ReadonlyArray<Http2Session>, onDrained: () => void): void => {
  let open = sessions.length
  // A proxy may have sent the headers of a stream, and not its first request.
  const drained = () => void setTimeout(onDrained, firstRequestMillis).unref()
  for (const session of sessions) {
    session.closeGracefully("stopping", () => {
      open -= 1
      if (open === 0) drained()
    })
  }
  if (sessions.length === 0) drained()
}

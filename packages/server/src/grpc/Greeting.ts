/**
 * Time limit for the first SETTINGS of a client, on each HTTP/2 connection. The preface has then arrived
 * (Protocol.ts), or TLS has selected HTTP/2; without this limit, a client could hold a connection that says nothing
 * more. After its settings, a connection may be idle, as gRPC's are.
 */
import type { Http2Session } from "./Http2Session.ts"
import type { LimitReports } from "../limit/LimitReports.ts"
import * as Timer from "../port/Timer.ts"

export const limit = (session: Http2Session, timeoutMillis: number, limits: LimitReports): void => {
  const timer = Timer.start(() => {
    if (session.isDestroyed) return
    const client = session.remoteAddress ?? "a client that has disconnected"
    limits.acted("connection_greeting", `Closed an HTTP/2 connection of ${client}: it has sent no settings in time`)
    session.destroy()
  }, timeoutMillis)
  const stop = () => clearTimeout(timer)
  session.onSettings(() => {
    stop()
    // An idle connection would keep the timer's memory.
    session.offClose(stop)
  })
  session.onClose(stop)
}

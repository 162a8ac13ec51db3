/**
 * One HTTP/2 connection, as the rules for connections need it: Keepalive.ts and SessionCalls.ts. NodeSession.ts
 * implements it on node:http2, EngineSession.ts on `@nereid/http2`.
 */
export interface Http2Session {
  /** Address of the client; undefined for a connection that has failed. */
  readonly remoteAddress: string | undefined
  /** Bytes of the socket; 0 after it has closed. */
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Whether the connection accepts no more calls. */
  readonly isClosing: boolean
  /** Whether the connection has no more streams. */
  readonly isDestroyed: boolean
  /** Sends a ping. `acknowledged` is not called if the connection ends before that. */
  readonly ping: (acknowledged: () => void) => void
  /** Called for the first settings of the client, and perhaps for further ones. */
  readonly onSettings: (run: () => void) => void
  /** Called for each ping of the client. */
  readonly onPing: (run: () => void) => void
  readonly onClose: (run: () => void) => void
  /** Takes back what was passed to `onClose`. */
  readonly offClose: (run: () => void) => void
  /**
   * Closes in two steps (Goaway.ts), once the calls in flight are answered. `onLast` is called once no further call is
   * accepted.
   */
  readonly closeGracefully: (reason: string, onLast?: () => void) => void
  /** Accepts no more calls, and closes once those in flight are answered, or after `limitMillis`. */
  readonly closeWithin: (reason: string, limitMillis: number) => void
  /** Closes for the client's behaviour. Calls in flight end. */
  readonly closeAtOnce: (reason: string) => void
  /** Closes without a reason. Calls in flight end. */
  readonly destroy: () => void
}

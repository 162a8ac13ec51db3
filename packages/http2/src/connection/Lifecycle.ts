/** Events of the parts of a connection that are its end (Connection.ts). */
export interface Lifecycle {
  /** A stream has closed, after its own `onClose`. */
  readonly streamClosed: () => void
  /** The peer accepts no streams above `lastStream` any more. */
  readonly receivedGoaway: (lastStream: number, code: number, reason: string) => void
}

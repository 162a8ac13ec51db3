/**
 * Interfaces between an HTTP/2 implementation and gRPC calls. The implementation passes on the client's data; the call
 * responds through its stream. NodeCallStream.ts implements them for node:http2, MemoryCallStream.fixture.ts in memory.
 * UnaryCall.ts and StreamCall.ts implement calls.
 *
 *   caller ─► implementation ─► CallHandler: handles? begin ─► Call: onData … onEnd, onDrain, onClose
 *   caller ◄─ implementation ◄─ CallStream: reply │ send … end │ fail
 */
import type { CallStatus } from "./CallStatus.ts"
import type { HeldMemory } from "../limit/MemoryBudget.ts"

/** Metadata and pseudo-headers, by their names in lower case. */
export interface CallHeaders {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}

/** Events of a call, from the implementation. `onClose` always comes, and is the last. */
export interface Call {
  /**
   * The next bytes of the body, cut anywhere. Returns whether the call may still read them after this. They are not
   * overwritten then; otherwise their memory may be freed.
   */
  readonly onData: (chunk: Uint8Array) => boolean
  /** The caller has sent everything. Not called if the caller disconnects before that. */
  readonly onEnd: () => void
  /** There is room to send again, after a `send` that returned false. */
  readonly onDrain: () => void
  /** The stream has closed, with or without a response. */
  readonly onClose: () => void
}

/**
 * The response of a call, to the implementation. A frame is a message with its prefix. No effect once the stream has
 * closed.
 */
export interface CallStream {
  /** Memory that the connection of the call holds. */
  readonly memory: HeldMemory
  /** Milliseconds that what is read now has waited in the socket; 0 if it is not known. */
  readonly lag: number
  /** Sends the only frame and the status OK. Ends the call, like `end` and `fail`. */
  readonly reply: (frame: Uint8Array) => void
  /** Sends some of any number of frames. Returns false if the next must wait for `onDrain`. */
  readonly send: (frames: Uint8Array) => boolean
  /** Ends with the status OK, after all sent frames. */
  readonly end: () => void
  /** Ends with a status that is not OK, after all sent frames. */
  readonly fail: (status: CallStatus) => void
  /** Stops `onData` and `onEnd` until `resume`. The caller has to wait once its flow-control window is full. */
  readonly pause: () => void
  readonly resume: () => void
}

/** The calls that are handled through these interfaces. */
export interface CallHandler {
  /** Whether a call with these headers is handled. */
  readonly handles: (headers: CallHeaders) => boolean
  /** Begins a call, which may respond before this returns. */
  readonly begin: (headers: CallHeaders, stream: CallStream) => Call
}

/**
 * A gRPC call between an HTTP/2 implementation and what answers it. The implementation says what comes from the caller; the
 * call says, by its stream, what goes back. `NodeCallStream.ts` is node:http2's part; another implementation takes its
 * place by doing the same (there is one in memory: MemoryCallStream.fixture.ts). Not here: what a call does.
 *
 *   caller ─► implementation ─► Calls.takes? begin ─► Call: onData … onEnd, onDrain, onClose
 *   caller ◄─ implementation ◄─ CallStream: reply │ send … end │ fail
 */
import type { CallStatus } from "./CallStatus.ts"

/** Metadata and pseudo-headers, by their names in lower case. */
export interface Headers {
  readonly [name: string]: string | ReadonlyArray<string> | undefined
}

/** What the implementation tells the call. Nothing after `onClose`, which always comes. */
export interface Call {
  /** The next bytes of the body, wherever they are cut. They are the call's: nobody writes into them any more. */
  readonly onData: (chunk: Uint8Array) => void
  /** The caller has sent everything. It may not come at all where the caller has broken off. */
  readonly onEnd: () => void
  /** There is room again, after a `send` that said there was none. */
  readonly onDrain: () => void
  /** The stream is gone, answered or not: nobody waits any more. */
  readonly onClose: () => void
}

/** What the call tells the implementation. A frame is a message with its prefix. Harmless once the caller is gone. */
export interface CallStream {
  /** The only frame, and status OK. The last word, as `end` and `fail` are. */
  readonly reply: (frame: Uint8Array) => void
  /** Some of any number of frames. False where they wait for the caller: more are to come behind `onDrain` only. */
  readonly send: (frames: Uint8Array) => boolean
  /** Status OK, behind what was sent. */
  readonly end: () => void
  /** A status that is not OK, behind what was sent. */
  readonly fail: (status: CallStatus) => void
  /** No `onData` and no `onEnd` until `resume`: the caller has to wait once what it may send ahead is used up. */
  readonly pause: () => void
  readonly resume: () => void
}

/** The calls that are answered this way. */
export interface Calls {
  /** Whether one with these headers is. */
  readonly takes: (headers: Headers) => boolean
  /** It may be answered before this returns. */
  readonly begin: (headers: Headers, stream: CallStream) => Call
}

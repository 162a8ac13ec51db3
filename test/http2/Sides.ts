/**
 * One side of a connection under test, with node:http2 or `@nereid/http2`, and what the two have in common: the same
 * limits, and the same program above them.
 */
import { Duplex } from "node:stream"
import { setImmediate } from "node:timers/promises"
import type { Message, Sent } from "./Seen.ts"

export interface Side {
  /** Messages of the peer by stream, as the program received them. */
  readonly received: ReadonlyMap<number, Message>
  readonly sent: Sent
  /** Whether the connection has ended. */
  readonly isOver: boolean
  /** The violation of the protocol that has ended it, if the implementation tells. */
  readonly reason: string
  readonly receive: (chunk: Buffer) => void
  readonly close: () => void
}

export const limits = { streamWindow: 65_535, connectionWindow: 100_000, maxConcurrentStreams: 20 }

export const settingsOfNode = {
  settings: { initialWindowSize: limits.streamWindow, enablePush: false },
  maxSessionRejectedStreams: 2 ** 31,
  streamResetBurst: 2 ** 31,
  streamResetRate: 2 ** 31,
  strictFieldWhitespaceValidation: false,
}

/** The path of a request says what the server does: `/whole/5` replies with 5 bytes once the request is complete. */
export const planOf = (path: unknown): { readonly when: string; readonly size: number } => {
  const [, when = "", size = ""] = String(path).split("/")
  return { when, size: Number(size) || 0 }
}

export const head = { ":status": "200", "x-reply": "1" }

export const trailers = { "grpc-status": "0" }

export const payload = Buffer.alloc(100_000, "payload")

/** Requests of the client, each with a body of so many bytes. */
export const requests = [0, 10, 1000, 5000]

export const requestHead = { ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "localhost" }

/** Turns of the event loop, in which node:http2 does all that some bytes cause. */
export const settle = async (turns: number): Promise<void> => {
  for (let turn = 0; turn < turns; turn++) await setImmediate()
}

/** A socket in memory. */
export class Wire extends Duplex {
  readonly #sent: Sent

  constructor(sent: Sent) {
    super()
    this.#sent = sent
    this.on("error", () => {})
  }

  override _read(): void {}

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#sent.read(chunk)
    done()
  }
}

/**
 * Viewers of one stream of server-sent events. All of them receive the same bytes. A viewer that does not read is cut
 * off, so the stream waits for nobody.
 */
import { maxViewers } from "@nereid/dashboard/internal/live/LiveMessage"
import type { OutgoingResponse } from "../port/HttpExchange.ts"
import * as HttpExchange from "../port/HttpExchange.ts"
import * as HalfClosed from "../port/HalfClosed.ts"
import { sendText } from "../port/HttpReply.ts"

/** Events that a viewer may miss while it does not read. */
const maxUnread = 30

const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  "x-content-type-options": "nosniff",
}

interface Viewer {
  /** Whether it has not read what was sent. */
  isBehind: boolean
  /** Events that were sent since then. */
  unread: number
}

export class EventStream {
  readonly #viewers = new Map<OutgoingResponse, Viewer>()
  #isClosed = false

  get size(): number {
    return this.#viewers.size
  }

  /** Answers a request with the stream, which begins with `opening`. Refuses it if there are too many viewers. */
  open(response: OutgoingResponse, opening: () => ReadonlyArray<Uint8Array>): void {
    if (this.#isClosed) return sendText(response, 503, "the server is stopping")
    if (this.#viewers.size >= maxViewers) {
      return sendText(response, 503, `${maxViewers} viewers have this stream open, no more are allowed`)
    }
    const viewer: Viewer = { isBehind: false, unread: 0 }
    this.#viewers.set(response, viewer)
    response.on("close", () => this.#viewers.delete(response))
    response.on("drain", () => {
      viewer.isBehind = false
      viewer.unread = 0
    })
    HalfClosed.probeWith(response, () => response.write(comment))
    response.writeHead(200, headers)
    response.cork()
    for (const chunk of opening()) viewer.isBehind = !response.write(chunk)
    response.uncork()
  }

  /** Sends an event, or several, to every viewer. */
  send(event: Uint8Array): void {
    for (const [response, viewer] of this.#viewers) {
      if (viewer.isBehind) viewer.unread += 1
      if (viewer.unread > maxUnread) HttpExchange.cutOff(response)
      else if (!response.write(event)) viewer.isBehind = true
    }
  }

  /** Ends the stream of every viewer, and refuses further ones. */
  close(): void {
    this.#isClosed = true
    for (const response of this.#viewers.keys()) response.end()
    this.#viewers.clear()
  }
}

const comment = Buffer.from(":\n\n")

/** The text of one event. `json` has no line breaks. */
export const event = (json: string): string => `data: ${json}\n\n`

/**
 * Whole responses that the program gives while a chunk is read. They are sent once the chunk has been read, so that a
 * request which the same chunk cancels costs no frames. A client counts frames of streams that it has reset: one with
 * nghttp2 ends a connection after 10,000 of them, and 330 a second.
 */
import type { FieldList } from "../hpack/HeaderDecoder.ts"
import type { HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import type { Sender } from "./Sender.ts"
import type { Stream } from "./Stream.ts"

interface Head {
  readonly stream: Stream
  readonly template: HeaderTemplate | undefined
  readonly fields: FieldList
  readonly body: undefined
}

interface Message {
  readonly stream: Stream
  readonly template: HeaderTemplate
  readonly fields: FieldList
  readonly body: Uint8Array
  readonly trailers: HeaderTemplate
}

/** A head that is also the end, or a message with trailers. */
export type Response = Head | Message

const none: Array<Response> = []

export class Responses {
  readonly #sender: Sender
  #waiting = none

  constructor(sender: Sender) {
    this.#sender = sender
  }

  /** Nothing else can be sent on the stream any more. */
  add(response: Response): void {
    response.stream.isEnding = true
    if (this.#waiting === none) this.#waiting = [response]
    else this.#waiting.push(response)
  }

  /** Sends the responses of the streams that are still open, in order. */
  send(): void {
    const waiting = this.#waiting
    if (waiting === none) return
    this.#waiting = none
    for (const response of waiting) {
      const { stream, template } = response
      if (stream.isClosed) continue
      if (response.body === undefined) this.#sender.head(stream, template, response.fields, true)
      else this.#sender.message(stream, response.template, response.body, response.trailers)
    }
  }
}

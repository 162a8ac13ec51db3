/** How many calls of an HTTP/2 connection are in flight, which node knows and does not tell. */
import type { ServerHttp2Session } from "node:http2"

export class CallsInFlight {
  #count = 0

  constructor(session: ServerHttp2Session) {
    const onClose = () => {
      this.#count -= 1
    }
    session.on("stream", (stream) => {
      this.#count += 1
      stream.on("close", onClose)
    })
  }

  get count(): number {
    return this.#count
  }
}

/**
 * Streams of HTTP/2 whose caller has its whole answer and goes on sending, or does not end its request. They end all the
 * same (RFC 9113, 8.1): they are few on a connection, and a stop waits for them.
 */
import { constants, type ServerHttp2Stream } from "node:http2"

/** A reset at once would overtake the answer. */
const lingerMillis = 1_000

/** To be called when the answer is written. */
export const closeSoon = (stream: ServerHttp2Stream): void => {
  if (stream.readableEnded) return
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_NO_ERROR), lingerMillis)
  stream.on("close", () => clearTimeout(timer))
}

/**
 * Closes HTTP/2 streams whose response is complete but whose client has not ended its request (RFC 9113, 8.1).
 * Otherwise they would count against the connection's limit of streams, and a stop would wait for them.
 */
import type { ServerHttp2Stream } from "node:http2"
import { ErrorCode } from "@nereid/http2/internal/frame/ErrorCode"

/** A reset at once would overtake the answer. */
export const lingerMillis = 1_000

/** To be called when the answer is written. */
export const closeSoon = (stream: ServerHttp2Stream): void => {
  if (stream.readableEnded) return
  const timer = setTimeout(() => stream.close(ErrorCode.NO_ERROR), lingerMillis)
  stream.on("close", () => clearTimeout(timer))
}

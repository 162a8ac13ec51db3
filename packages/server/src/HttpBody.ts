/**
 * Collects the body of a request: into one buffer of its announced length, or, without one, from its chunks. Never more
 * than the limit; a body that breaks off is nobody's any more and calls nothing.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { InvalidRequest } from "@nereid/core/Errors"
import { sendErrorAndClose } from "./HttpReply.ts"

/** Calls `whole` with the body; answers itself where it is larger than `limit`. */
export const collect = (
  request: IncomingMessage,
  response: ServerResponse,
  limit: number,
  whole: (body: Uint8Array) => void,
): void => {
  const length = request.headers["content-length"]
  const expected = length === undefined ? undefined : Number(length)
  if (expected !== undefined && expected > limit) return sendErrorAndClose(request, response, tooLarge(expected, limit))
  if (request.headers.expect !== undefined) response.writeContinue()

  let body: Buffer | undefined
  let chunks: Array<Buffer> = []
  let received = 0
  const onData = (chunk: Buffer) => {
    const from = received
    received += chunk.length
    if (expected === undefined) {
      chunks.push(chunk)
      if (received <= limit) return
      request.off("data", onData)
      request.off("end", onEnd)
      chunks = []
      sendErrorAndClose(request, response, tooLarge(received, limit))
    } else if (chunk.length === expected) body = chunk
    else {
      body ??= Buffer.allocUnsafeSlow(expected)
      body.set(chunk, from)
    }
  }
  const onEnd = () => whole(body ?? Buffer.concat(chunks, received))
  request.on("data", onData)
  request.on("end", onEnd)
}

/** `size`: how many bytes came, or how that is said of a body that was not read to its end. */
export const tooLarge = (size: number | string, limit: number): InvalidRequest => {
  const limited = `exceeds the maximum allowed input size of ${limit} bytes`
  const advice = "Use --http-max-input-size to increase the limit."
  return new InvalidRequest({ message: `request JSON size of ${size} bytes ${limited}. ${advice}` })
}

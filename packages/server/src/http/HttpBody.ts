/**
 * Collects the body of a request: into one buffer of its announced length, or, without one, from its chunks. Never more
 * than the limit. An aborted body triggers no callback.
 */
import { InvalidRequest } from "@nereid/core/Errors"
import { isClosed, type IncomingRequest, type OutgoingResponse } from "../port/HttpExchange.ts"
import { sendErrorAndClose } from "../port/HttpReply.ts"
import * as RequestMemory from "../memory/RequestMemory.ts"

/** Maximum chunks of a body of unknown length. A small chunk costs more than its bytes. */
const maxChunks = 65_536

/**
 * Collects a body and calls `whole` with it. The byte at `aligned` is aligned for a tensor. A body above `limit` bytes
 * is answered with the error of `tooLarge`.
 */
export const collect = (
  request: IncomingRequest,
  response: OutgoingResponse,
  limit: number,
  whole: (body: Uint8Array) => void,
  tooLarge: TooLarge = jsonTooLarge,
  aligned = 0,
): void => {
  const length = request.headers["content-length"]
  const expected = length === undefined ? undefined : Number(length)
  if (expected !== undefined && expected > limit) return sendErrorAndClose(request, response, tooLarge(expected, limit))
  if (request.headers.expect !== undefined) response.writeContinue()

  let body: Uint8Array | undefined
  let chunks: Array<Buffer> = []
  let received = 0
  /** Copied, but its parser may not be done with it. */
  let copied: Buffer = noBytes
  const onData = (chunk: Buffer) => {
    const from = received
    received += chunk.length
    if (expected === undefined) {
      // An HTTP chunk is one of these, or several if it arrives in parts.
      chunks.push(chunk)
      if (received <= limit && chunks.length <= maxChunks) return
      request.off("data", onData)
      request.off("end", onEnd)
      chunks = []
      sendErrorAndClose(request, response, received > limit ? tooLarge(received, limit) : tooManyChunks())
    } else if (chunk.length === expected) body = chunk
    else {
      body ??= RequestMemory.allocate(expected, aligned, response.stream === undefined)
      body.set(chunk, from)
      RequestMemory.free(copied)
      copied = chunk
    }
  }
  const onEnd = () => {
    RequestMemory.free(copied)
    // Over HTTP/2 it also comes when the caller breaks off.
    if (!isClosed(response)) whole(body ?? Buffer.concat(chunks, received))
  }
  request.on("data", onData)
  request.on("end", onEnd)
}

const noBytes = Buffer.alloc(0)

const tooManyChunks = () =>
  new InvalidRequest({
    message: `Chunked request body exceeds maximum of ${maxChunks} non-empty chunks. Send fewer or larger HTTP chunks.`,
  })

/** `size`: how many bytes came, or how that is said of a body that was not read to its end. */
export type TooLarge = (size: number | string, limit: number) => InvalidRequest

export const jsonTooLarge: TooLarge = (size, limit) => {
  const limited = `exceeds the maximum allowed input size of ${limit} bytes`
  return new InvalidRequest({ message: `request JSON size of ${size} bytes ${limited}. ${advice}` })
}

/** Error for a raw request, whose body is an input. */
export const rawTooLarge: TooLarge = (size, limit) => {
  const limited = `exceeds the maximum allowed value of ${limit} bytes`
  return new InvalidRequest({ message: `Raw input has a byte_size (${size} bytes) that ${limited}. ${advice}` })
}

const advice = "Use --http-max-input-size to increase the limit."

/**
 * Collects the body of a request: into one buffer of its announced length, or, without one, from its chunks. Never more
 * than the limit. An aborted body triggers no callback.
 */
import { DeadlineExceeded, type InferenceError, InvalidRequest } from "@nereid/core/Errors"
import * as ReceiveRate from "../limit/ReceiveRate.ts"
import { isClosed } from "../port/HttpExchange.ts"
import type { HttpCall } from "./HttpCall.ts"
import { sendErrorAndClose } from "../port/HttpReply.ts"
import { ReceivedMemory } from "../memory/ReceivedMemory.ts"
import * as RequestMemory from "../memory/RequestMemory.ts"

/** Maximum chunks of a body of unknown length. A small chunk costs more than its bytes. */
const maxChunks = 65_536

/**
 * Collects a body within the memory budget and at a minimum rate, and calls `whole` with it, and with its memory if it
 * was copied from the chunks of the socket. The byte at `aligned` is aligned for a tensor. A body above `limit` bytes
 * is answered with the error of `tooLarge`.
 */
export const collect = (
  { request, response, memory, limits }: Pick<HttpCall, "request" | "response" | "memory" | "limits">,
  limit: number,
  whole: (body: Uint8Array, memory: ReceivedMemory | undefined) => void,
  tooLarge: TooLarge = jsonTooLarge,
  aligned = 0,
): void => {
  const length = request.headers["content-length"]
  const expected = length === undefined ? undefined : Number(length)
  if (expected !== undefined && expected > limit) return sendErrorAndClose(request, response, tooLarge(expected, limit))
  if (request.headers.expect !== undefined) response.writeContinue()

  let body: Uint8Array | undefined
  let separate: ReceivedMemory | undefined
  let chunks: Array<Buffer> = []
  let received = 0
  /** Bytes taken from the memory budget. */
  let held = 0
  let isWhole = false
  let rate: { readonly stop: () => void } | undefined
  /** Copied, but its parser may not be done with it. */
  let copied: Buffer = noBytes
  const release = () => {
    rate?.stop()
    memory.give(held)
    held = 0
  }
  /** The connection has closed, or the body is refused. */
  const drop = () => {
    release()
    if (!isWhole) separate?.free()
    body = separate = undefined
    chunks = []
  }
  const refuse = (error: InferenceError, status?: number) => {
    request.off("data", onData)
    request.off("end", onEnd)
    drop()
    sendErrorAndClose(request, response, error, status)
  }
  const tooSlow = () => {
    limits.acted("receive_time", `Refused ${request.method} ${request.url}, because its body did not arrive in time`)
    refuse(new DeadlineExceeded({ message: tooSlowMessage }), 408)
  }
  /** Takes memory for a part of the body. Returns false if the body is refused. */
  const hold = (bytes: number): boolean => {
    if (held === 0) {
      response.on("close", drop)
      rate = ReceiveRate.watch(() => received, tooSlow)
    }
    const full = memory.take(bytes)
    if (full === undefined) held += bytes
    else refuse(full)
    return full === undefined
  }
  const onData = (chunk: Buffer) => {
    const from = received
    received += chunk.length
    if (expected === undefined) {
      // An HTTP chunk is one of these, or several if it arrives in parts.
      if (received > limit) return refuse(tooLarge(received, limit))
      if (chunks.length === maxChunks) return refuse(tooManyChunks())
      if (hold(chunk.length)) chunks.push(chunk)
    } else if (chunk.length === expected) body = chunk
    else if (hold(chunk.length)) {
      separate ??= new ReceivedMemory(expected, aligned, response.stream === undefined)
      body = separate.bytes
      body.set(chunk, from)
      RequestMemory.free(copied)
      copied = chunk
    }
  }
  const onEnd = () => {
    RequestMemory.free(copied)
    release()
    isWhole = true
    // Over HTTP/2 it also comes when the caller breaks off.
    if (!isClosed(response)) whole(body ?? Buffer.concat(chunks, received), separate)
  }
  request.on("data", onData)
  request.on("end", onEnd)
}

const noBytes = Buffer.alloc(0)

const tooSlowMessage = `the body arrives at less than ${ReceiveRate.minRate} bytes per second`

const tooManyChunks = () =>
  new InvalidRequest({
    message: `Chunked request body exceeds maximum of ${maxChunks} non-empty chunks. Send fewer or larger HTTP chunks.`,
  })

/** `size` in bytes. */
export type TooLarge = (size: number, limit: number) => InvalidRequest

export const jsonTooLarge: TooLarge = (size, limit) => {
  const limited = `exceeds the maximum allowed input size of ${limit} bytes`
  return new InvalidRequest({ message: `request JSON size of ${size} bytes ${limited}. ${advice}` })
}

/** Error for a raw request, whose body is an input. */
export const rawTooLarge: TooLarge = (size, limit) => {
  const limited = `exceeds the maximum allowed value of ${limit} bytes`
  return new InvalidRequest({ message: `Raw input has a byte_size (${size} bytes) that ${limited}. ${advice}` })
}

/** Error for a compressed request. Its size is unknown, because it is not decompressed to its end. */
export const decompressedTooLarge = (limit: number): InvalidRequest =>
  new InvalidRequest({
    message: `decompressed request size exceeds the maximum allowed value of ${limit} bytes. ${advice}`,
  })

const advice = "Use --http-max-input-size to increase the limit."

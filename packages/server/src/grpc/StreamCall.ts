/**
 * One ModelStreamInfer over gRPC, without a framework: reads messages as they arrive, and sends all ready results
 * together. Its HTTP/2 implementation is behind the interfaces of Call.ts; the order and meaning of results is in
 * InferStream.ts.
 *
 *   onData … ─► messages ─► decode ─► InferStream.submit     a refused request: a result in its turn
 *     ▲ pause: the stream is full                 │          a message that is malformed, too large or late: fail
 *     └ resume ◄──────────── flush ◄── onChange ──┘
 *   stream.send ◄─ encode ◄─┘ │ once for all ready results, and not while the caller reads nothing
 *   stream.end  ◄─────────────┘ half-closed and all answered;  fail: a stop, a deadline, the first error if requested
 *
 * After a half-close, requests in flight finish. After a stop they do too, and the stream then ends as unavailable. A
 * caller that disconnects cancels all its requests.
 */
import { Result } from "effect"
import { DeadlineExceeded } from "@nereid/core/Errors"
import { prefixLength, writePrefix } from "@nereid/core/internal/grpc/GrpcFrame"
import * as ProtobufCodec from "@nereid/core/internal/codec/protobuf/ProtobufCodec"
import type { StreamResponse } from "@nereid/core/internal/wire/WireRequest"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { Call, CallStream } from "./Call.ts"
import * as CallStatus from "./CallStatus.ts"
import type { CallMetadata, GrpcCallOptions } from "./UnaryCall.ts"
import { InferStream, type InferStreamOptions } from "./InferStream.ts"
import { ReceivingCall } from "./ReceiveTimeout.ts"
import { RequestMessageReader } from "./RequestMessageReader.ts"
import * as Timer from "../port/Timer.ts"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"

export interface StreamMetadata extends CallMetadata, InferStreamOptions {}

/** Bytes of messages in one write, unless a single message is larger. */
const maxWriteBytes = 256 * 1024

const path = `${GRPCInferenceService.typeName}/${GRPCInferenceService.method.modelStreamInfer.name}`

export class StreamCall extends ReceivingCall implements Call {
  readonly #options: GrpcCallOptions
  readonly #stream: CallStream
  readonly #metadata: StreamMetadata
  readonly #reader: RequestMessageReader
  readonly #requests: InferStream
  readonly #onStop: () => void
  #deadlineTimer: NodeJS.Timeout | undefined
  /** Whether the caller has sent everything. */
  #halfClosed = false
  /** Whether reading waits for room in the stream. */
  #paused = false
  /** Whether writing waits for the caller to read. */
  #blocked = false
  /** Bytes for which writing waits. */
  #unread = 0
  /** Sends ready results, in a microtask after all current events. */
  readonly #flush: () => void
  #flushing = false
  /** Whether the call is over. Later events are ignored. */
  #done = false
  /** The status for the record. */
  #status = "CANCELLED"

  constructor(options: GrpcCallOptions, stream: CallStream, metadata: StreamMetadata) {
    super()
    const { gateway } = options
    const { deadline } = metadata
    this.#options = options
    this.#stream = stream
    this.#metadata = metadata
    this.#reader = new RequestMessageReader(options, stream.memory)
    // Assigned in two steps: V8 places closures that are assigned to a property at once in old space, with all they
    // refer to.
    const flush = () => this.#send()
    this.#flush = flush
    const onStop = () => this.#requests.end()
    this.#onStop = onStop
    this.#requests = new InferStream(gateway, metadata, () => this.#onChange(), stream.memory)
    if (deadline !== undefined)
      this.#deadlineTimer = Timer.start(() => this.#failOverdue(), deadline - MonotonicTime.millis())
    gateway.endingStreams.addEventListener("abort", onStop, { once: true })
    if (gateway.endingStreams.aborted) onStop()
  }

  onData(chunk: Uint8Array): boolean {
    if (this.#done) return false
    this.#reader.add(chunk)
    this.#read()
    return this.#reader.keepsChunk
  }

  override get received(): number {
    return this.#reader.received
  }

  /** The caller has sent everything. */
  onEnd(): void {
    this.#halfClosed = true
    if (!this.#paused) this.#endRequests()
  }

  onDrain(): void {
    this.#blocked = false
    this.#hold(0)
    this.#onChange()
  }

  /** The stream has closed. Results are no longer needed. */
  onClose(): void {
    this.#abandon()
    this.#hold(0)
    this.#metadata.record?.end(path, this.#status)
  }

  /** A message has begun and did not arrive completely in time. */
  override expire(reason: "late" | "slow"): void {
    const { progress } = this.#reader
    const { gateway, receiveTimeout } = this.#options
    gateway.limits.acted("receive_time", `Ended a stream, because its message did not arrive in time: ${progress}`)
    this.fail(reason === "late" ? CallStatus.late(receiveTimeout.milliseconds, progress) : CallStatus.slow(progress))
  }

  /** Ends the call with a status that is not OK, after all sent messages. */
  fail(status: CallStatus.CallStatus): void {
    if (this.#done) return
    this.#status = CallStatus.name(status.code)
    this.#abandon()
    this.#stream.fail(status)
  }

  #read(): void {
    const { receiveTimeout } = this.#options
    const reader = this.#reader
    while (!this.#requests.isFull) {
      if (!reader.next()) {
        if (reader.failure !== undefined) return this.fail(reader.failure)
        if (!reader.isBetween && this.expiresAt === undefined) receiveTimeout.add(this)
        return
      }
      receiveTimeout.remove(this)
      this.#submit()
      if (this.#done) return
    }
    this.#paused = true
    this.#stream.pause()
  }

  #submit(): void {
    const { bytes, start, end } = this.#reader
    const message = ProtobufCodec.decodeStream(bytes, start, end)
    if (Result.isFailure(message)) return this.fail(CallStatus.fromError(message.failure))
    const { id, request } = message.success
    try {
      this.#requests.submit(id, Result.flatMap(request, this.#metadata.prepare))
    } catch (defect) {
      this.#options.logDefect(defect)
      this.fail(CallStatus.internal)
    }
  }

  #endRequests(): void {
    if (this.#done) return
    if (this.#reader.isBetween) this.#requests.end()
    else this.fail(CallStatus.incomplete(this.#reader.progress))
  }

  #onChange(): void {
    if (this.#flushing || this.#done) return
    this.#flushing = true
    queueMicrotask(this.#flush)
  }

  #send(): void {
    this.#flushing = false
    try {
      // Only results that are ready now: a model that responds at once would otherwise occupy the event loop forever.
      for (let left = this.#requests.ready; left > 0 && !this.#done && !this.#blocked;) left -= this.#sendSome(left)
      if (this.#done) return
      if (this.#requests.isOver) this.#finish()
      else if (this.#paused && !this.#requests.isFull) this.#resume()
    } catch (defect) {
      this.#options.logDefect(defect)
      this.fail(CallStatus.internal)
    }
  }

  /** Sends up to `maxResults` results together, at least one, and returns how many. */
  #sendSome(maxResults: number): number {
    const { maxMessageSize } = this.#options
    const messages: Array<StreamResponse> = []
    const lengths: Array<number> = []
    let size = 0
    let status: CallStatus.CallStatus | undefined
    while (messages.length < maxResults && size < maxWriteBytes) {
      const result = this.#requests.take()
      if (result === undefined) break
      const failure = this.#requests.endingFailure(result)
      if (failure !== undefined) {
        status = CallStatus.fromError(failure)
        break
      }
      const message = ProtobufCodec.streamResponse(result.id, result.outcome, result.isFinal)
      const length = ProtobufCodec.streamLength(message)
      if (length > maxMessageSize) {
        status = CallStatus.tooLarge(length, maxMessageSize)
        break
      }
      messages.push(message)
      lengths.push(length)
      size += prefixLength + length
    }
    if (size > 0) this.#blocked = !this.#stream.send(frames(messages, lengths, size))
    if (this.#blocked) this.#hold(size)
    if (status !== undefined) this.fail(status)
    return Math.max(1, messages.length)
  }

  /** Counts bytes that the caller has not read. */
  #hold(bytes: number): void {
    this.#stream.memory.give(this.#unread)
    this.#stream.memory.add(bytes)
    this.#unread = bytes
  }

  #finish(): void {
    if (!this.#halfClosed) return this.fail(CallStatus.fromError(CallStatus.shuttingDown))
    this.#status = "OK"
    this.#abandon()
    this.#stream.end()
  }

  #resume(): void {
    this.#paused = false
    this.#read()
    if (this.#paused || this.#done) return
    if (this.#halfClosed) this.#endRequests()
    else this.#stream.resume()
  }

  #failOverdue(): void {
    this.fail(CallStatus.fromError(new DeadlineExceeded({ message: "Deadline Exceeded" })))
  }

  #abandon(): void {
    this.#done = true
    this.#options.receiveTimeout.remove(this)
    this.#reader.release()
    this.#options.gateway.endingStreams.removeEventListener("abort", this.#onStop)
    clearTimeout(this.#deadlineTimer)
    this.#requests.cancel()
  }
}

/** The messages, each behind its prefix, in `size` bytes. */
const frames = (messages: ReadonlyArray<StreamResponse>, lengths: ReadonlyArray<number>, size: number): Uint8Array => {
  const bytes = Buffer.allocUnsafe(size)
  let position = 0
  for (const [index, message] of messages.entries()) {
    writePrefix(bytes, position, lengths[index] ?? 0)
    position = ProtobufCodec.writeStream(message, bytes, position + prefixLength)
    message.response.release?.()
  }
  return bytes
}

/**
 * One ModelStreamInfer over gRPC, without a framework: takes its messages as they come, sends what is ready together. It
 * knows no HTTP/2 implementation (Call.ts); what the requests and results mean is InferStream.ts's.
 *
 *   onData … ─► messages ─► decode ─► InferStream.ask        one that is refused: a result in its turn
 *     ▲ pause: the stream is full                 │          one that is no message, too large or late: the end
 *     └ resume ◄──────────── flush ◄── onChange ──┘
 *   stream.send ◄─ encode ◄─┘ │ once for all that is ready at a time, and not while the caller takes nothing
 *   stream.end  ◄─────────────┘ half-closed and all answered;  fail: a stop, a deadline, the first error if so asked
 *
 * Half-close lets requests in flight finish, a stop does too and then ends the stream as unavailable; a caller that goes
 * away takes back all it has asked.
 */
import { Result } from "effect"
import { DeadlineExceeded } from "@nereid/core/Errors"
import { prefixLength, writePrefix } from "@nereid/core/internal/grpc/GrpcFrame"
import * as ProtobufCodec from "@nereid/core/internal/codec/protobuf/ProtobufCodec"
import type { StreamResponse } from "@nereid/core/internal/wire/WireRequest"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { Call, CallStream } from "./Call.ts"
import * as CallStatus from "./CallStatus.ts"
import type { CallMetadata, CallOptions } from "./UnaryCall.ts"
import { InferStream, type InferStreamOptions } from "./InferStream.ts"
import { ReceivingCall } from "./ReceiveTimeout.ts"
import { RequestMessageReader } from "./RequestMessageReader.ts"
import * as Timer from "../port/Timer.ts"

export interface StreamMetadata extends CallMetadata, InferStreamOptions {}

/** Bytes of messages that are sent at a time, or one larger message. */
const mostAtOnce = 256 * 1024

const path = `${GRPCInferenceService.typeName}/${GRPCInferenceService.method.modelStreamInfer.name}`

export class StreamCall extends ReceivingCall implements Call {
  readonly #options: CallOptions
  readonly #stream: CallStream
  readonly #metadata: StreamMetadata
  readonly #reader: RequestMessageReader
  readonly #requests: InferStream
  readonly #onStop: () => void
  #deadlineTimer: NodeJS.Timeout | undefined
  /** Has sent everything. */
  #halfClosed = false
  /** Nothing is read, until there is room. */
  #paused = false
  /** The caller takes nothing, until it does. */
  #blocked = false
  /** Called once all that is under way now has had its turn. */
  readonly #flush: () => void
  #flushing = false
  /** Answered, failed or gone: whatever comes now is ignored. */
  #done = false
  /** For the record. */
  #status = "CANCELLED"

  constructor(options: CallOptions, stream: CallStream, metadata: StreamMetadata) {
    super()
    const { gateway } = options
    const { deadline } = metadata
    this.#options = options
    this.#stream = stream
    this.#metadata = metadata
    this.#reader = new RequestMessageReader(options)
    // Not assigned as they are written: V8 would put them where only full collections look, and all of this with them.
    const flush = () => this.#send()
    this.#flush = flush
    const onStop = () => this.#requests.end()
    this.#onStop = onStop
    this.#requests = new InferStream(gateway, metadata, () => this.#onChange())
    if (deadline !== undefined) this.#deadlineTimer = Timer.start(() => this.#failOverdue(), deadline - Date.now())
    gateway.stopping.addEventListener("abort", onStop, { once: true })
    if (gateway.stopping.aborted) onStop()
  }

  onData(chunk: Uint8Array): void {
    if (this.#done) return
    this.#reader.add(chunk)
    this.#read()
  }

  /** The caller has sent everything. */
  onEnd(): void {
    this.#halfClosed = true
    if (!this.#paused) this.#endRequests()
  }

  onDrain(): void {
    this.#blocked = false
    this.#onChange()
  }

  /** The stream is gone: nobody waits for answers any more. */
  onClose(): void {
    this.#abandon()
    this.#metadata.record?.end(path, this.#status)
  }

  /** A message has begun and not come completely in time. */
  expire(): void {
    this.fail(CallStatus.late(this.#options.receiveTimeout.milliseconds, this.#reader.progress))
  }

  /** With a status that is not OK, behind what was sent. */
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
      this.#ask()
      if (this.#done) return
    }
    this.#paused = true
    this.#stream.pause()
  }

  #ask(): void {
    const { bytes, start, end } = this.#reader
    const message = ProtobufCodec.decodeStream(bytes, start, end)
    if (Result.isFailure(message)) return this.fail(CallStatus.fromError(message.failure))
    const { id, request } = message.success
    try {
      this.#requests.ask(id, Result.flatMap(request, this.#metadata.prepare))
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
      // Not what this brings: a model that answers at once would hold on to the event loop without end.
      for (let left = this.#requests.ready; left > 0 && !this.#done && !this.#blocked;) left -= this.#sendSome(left)
      if (this.#done) return
      if (this.#requests.isOver) this.#finish()
      else if (this.#paused && !this.#requests.isFull) this.#resume()
    } catch (defect) {
      this.#options.logDefect(defect)
      this.fail(CallStatus.internal)
    }
  }

  /** Sends up to so many results together, at least one, and returns how many. */
  #sendSome(most: number): number {
    const { maxMessageSize } = this.#options
    const messages: Array<StreamResponse> = []
    const lengths: Array<number> = []
    let size = 0
    let status: CallStatus.CallStatus | undefined
    while (messages.length < most && size < mostAtOnce) {
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
    if (status !== undefined) this.fail(status)
    return Math.max(1, messages.length)
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
    this.#options.gateway.stopping.removeEventListener("abort", this.#onStop)
    clearTimeout(this.#deadlineTimer)
    this.#requests.cancel()
  }
}

/** The messages, each behind its prefix, as bytes that are so many in all. */
const frames = (messages: ReadonlyArray<StreamResponse>, lengths: ReadonlyArray<number>, size: number): Uint8Array => {
  const bytes = Buffer.allocUnsafe(size)
  let position = 0
  for (const [index, message] of messages.entries()) {
    writePrefix(bytes, position, lengths[index] ?? 0)
    position = ProtobufCodec.writeStream(message, bytes, position + prefixLength)
  }
  return bytes
}

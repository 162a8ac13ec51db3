/**
 * One ModelStreamInfer over gRPC, without a framework: cuts the messages out of what comes, asks for each, and writes what
 * is ready together. What the requests and their results mean is InferStream's; it knows no implementation of HTTP/2
 * (Call.ts).
 *
 *   onData ─► unread ─► whole message ─► decode ─► InferStream.ask ─► … ─► take, encode ─► responder.send ─► end │ fail
 *     │          └ while the InferStream is full: responder.pause               └ until it takes no more: onceWritable
 *     │ too large, compressed, none at all; too much of all callers together; too late: fail
 *   onClose: everything is taken back
 *
 * Half-close lets requests in flight finish; a stop does too, and then ends the stream as unavailable.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import * as ProtobufCodec from "@nereid/core/ProtobufCodec"
import type { StreamResponse } from "@nereid/core/WireRequest"
import type { CallMetadata, CallOptions, Receiver, Responder } from "./Call.ts"
import { fromError, type GrpcStatus, internal, shuttingDown } from "./GrpcStatus.ts"
import * as GrpcTimeout from "./GrpcTimeout.ts"
import { InferStream, type StreamResult } from "./InferStream.ts"
import { messageLength, MessageParts, prefixLength } from "./MessageParts.ts"
import * as Timer from "../port/Timer.ts"

/** Bytes that are worth one write; fewer wait for each other while they are ready together. */
const oneWrite = 64 * 1024

export class StreamCall implements Receiver {
  readonly #options: CallOptions
  readonly #responder: Responder
  readonly #metadata: CallMetadata
  readonly #deadline: number | undefined
  readonly #results: InferStream
  /** Chunks that have come and were not looked at, and where in the first of them. */
  readonly #unread: Array<Uint8Array> = []
  #position = 0
  /** The message that is not whole, and how long it is with its prefix; undefined until that is there. */
  readonly #parts: MessageParts
  #expected: number | undefined
  /** For the message that is not whole. */
  #receiveTimer: NodeJS.Timeout | undefined
  #deadlineTimer: NodeJS.Timeout | undefined
  #isReading = false
  #isPaused = false
  /** The caller has sent everything. */
  #hasEnded = false
  /** Its last message has been asked. */
  #halfClosed = false
  /** A look at the results is to come. */
  #willWrite = false
  /** The caller is to take some of what was sent first. */
  #isAhead = false
  /** Ended, failed or gone: whatever comes now is ignored. */
  #done = false

  constructor(options: CallOptions, responder: Responder, metadata: CallMetadata) {
    const { gateway, receiveBudget } = options
    this.#options = options
    this.#responder = responder
    this.#metadata = metadata
    this.#parts = new MessageParts(receiveBudget)
    const deadline = GrpcTimeout.deadline(metadata.timeout)
    this.#deadline = Result.getOrUndefined(deadline)
    this.#results = new InferStream(gateway, this.#deadline, {
      onResult: () => this.#writeSoon(),
      onRoom: () => this.#readOn(),
    })
    if (Result.isFailure(deadline)) {
      this.#fail(deadline.failure)
      return
    }
    gateway.stopping.addEventListener("abort", this.#onStop, { once: true })
    if (this.#deadline !== undefined) {
      this.#deadlineTimer = Timer.start(() => this.#fail(late), this.#deadline - Date.now())
    }
    if (gateway.stopping.aborted) this.#onStop()
  }

  onData(chunk: Uint8Array): void {
    if (this.#done || chunk.length === 0) return
    this.#unread.push(chunk)
    this.#read()
  }

  onEnd(): void {
    this.#hasEnded = true
    this.#read()
  }

  onClose(): void {
    if (!this.#done) this.#abandon()
  }

  readonly #onStop = () => this.#results.end()

  #readOn(): void {
    if (!this.#isPaused || this.#results.isFull) return
    this.#isPaused = false
    this.#responder.resume()
    this.#read()
  }

  #read(): void {
    // What is asked may be answered at once, and make room while there is some.
    if (this.#isReading) return
    this.#isReading = true
    try {
      for (let chunk = this.#unread[0]; chunk !== undefined && !this.#done; chunk = this.#unread[0]) {
        if (this.#results.isFull) {
          this.#isPaused = true
          this.#responder.pause()
          return
        }
        this.#position = this.#readMessage(chunk, this.#position)
        if (this.#position < chunk.length) continue
        this.#unread.shift()
        this.#position = 0
      }
      if (this.#hasEnded && !this.#done) this.#halfClose()
    } catch (defect) {
      this.#defect(defect)
    } finally {
      this.#isReading = false
    }
  }

  /** From there on in the chunk, at most one message; the position behind what was read. */
  #readMessage(chunk: Uint8Array, start: number): number {
    const parts = this.#parts
    const rest = chunk.length - start
    if (parts.length === 0 && rest >= prefixLength) {
      const length = this.#lengthOf(chunk.subarray(start, start + prefixLength))
      if (length === undefined) return chunk.length
      const end = start + length
      if (end <= chunk.length) {
        this.#ask(chunk.subarray(start, end))
        return end
      }
      this.#expected = length
    }
    const missing = (this.#expected ?? prefixLength) - parts.length
    if (rest < missing) {
      this.#hold(chunk.subarray(start))
      return chunk.length
    }
    const part = chunk.subarray(start, start + missing)
    if (this.#expected === undefined) {
      const length = this.#lengthOf(parts.join(part))
      if (length === undefined) return chunk.length
      this.#expected = length
      if (length > prefixLength) {
        this.#hold(part)
        return start + missing
      }
    }
    const message = parts.join(part)
    this.#release()
    this.#ask(message)
    return start + missing
  }

  /** Of the message with this prefix, and of the prefix. */
  #lengthOf(prefix: Uint8Array): number | undefined {
    const length = messageLength(prefix, this.#options.maxMessageSize)
    if (Result.isSuccess(length)) return prefixLength + length.success
    this.#fail(length.failure)
    return undefined
  }

  #hold(part: Uint8Array): void {
    const { receiveTimeoutMillis } = this.#options
    if (this.#parts.length === 0) this.#receiveTimer = Timer.start(() => this.#failLate(), receiveTimeoutMillis)
    const problem = this.#parts.hold(part)
    if (problem !== undefined) this.#fail(problem)
  }

  #release(): void {
    clearTimeout(this.#receiveTimer)
    this.#expected = undefined
    this.#parts.release()
  }

  #ask(message: Uint8Array): void {
    const decoded = ProtobufCodec.decodeStream(message, prefixLength)
    if (Result.isFailure(decoded)) return this.#fail(fromError(decoded.failure))
    const { id, request } = decoded.success
    this.#results.ask(id, Result.flatMap(request, this.#metadata.prepare))
  }

  #halfClose(): void {
    if (this.#parts.length > 0) {
      const message = `incomplete message: ${this.#progress()}`
      return this.#fail({ code: GrpcCode.INVALID_ARGUMENT, message, tag: "InvalidRequest" })
    }
    this.#halfClosed = true
    this.#results.end()
  }

  /** What else becomes ready in this turn goes with it. */
  #writeSoon(): void {
    if (this.#willWrite || this.#isAhead || this.#done) return
    this.#willWrite = true
    queueMicrotask(this.#write)
  }

  readonly #write = (): void => {
    this.#willWrite = false
    if (this.#isAhead || this.#done) return
    try {
      let frames: Array<StreamResponse> = []
      let size = 0
      for (let result = this.#results.take(); result !== undefined; result = this.#results.take()) {
        const ending = this.#endOf(result)
        const response = ProtobufCodec.streamResponse(result.id, result.outcome, result.isFinal)
        const length = ProtobufCodec.streamLength(response)
        if (ending !== undefined || length > this.#options.maxMessageSize) {
          this.#send(frames, size)
          return this.#fail(ending ?? this.#tooLarge(length))
        }
        frames.push(response)
        size += prefixLength + length
        if (size < oneWrite) continue
        if (!this.#send(frames, size)) return
        frames = []
        size = 0
      }
      if (!this.#send(frames, size)) return
      if (this.#results.isOver) this.#finish()
    } catch (defect) {
      this.#defect(defect)
    }
  }

  /** False where the caller is to take some before there is more for it. */
  #send(responses: ReadonlyArray<StreamResponse>, size: number): boolean {
    if (responses.length === 0 || this.#done) return !this.#done
    const frames = new Uint8Array(size)
    const view = new DataView(frames.buffer)
    let position = 0
    for (const response of responses) {
      const end = ProtobufCodec.writeStream(response, frames, position + prefixLength)
      view.setUint32(position + 1, end - position - prefixLength)
      position = end
    }
    if (this.#responder.send(frames)) return true
    this.#isAhead = true
    this.#responder.onceWritable(() => {
      this.#isAhead = false
      this.#write()
    })
    return false
  }

  /** The failure that this is for the whole stream. */
  #endOf({ outcome }: StreamResult): GrpcStatus | undefined {
    if (Result.isSuccess(outcome)) return undefined
    const { failure } = outcome
    // The queue may see the stream's deadline before its timer does; it is the end of the stream all the same.
    const isLate = failure._tag === "DeadlineExceeded" && this.#deadline !== undefined && this.#deadline <= Date.now()
    return this.#metadata.endsAtError || isLate ? fromError(failure) : undefined
  }

  #finish(): void {
    if (!this.#halfClosed) return this.#fail(fromError(shuttingDown))
    this.#abandon()
    this.#responder.end()
  }

  #progress(): string {
    return `${this.#parts.length} bytes with its prefix, expected ${this.#expected ?? `at least ${prefixLength}`}`
  }

  #failLate(): void {
    const limit = this.#options.receiveTimeoutMillis
    const message = `the message did not arrive within ${limit} ms: ${this.#progress()}`
    this.#fail({ code: GrpcCode.DEADLINE_EXCEEDED, message, tag: "DeadlineExceeded" })
  }

  #tooLarge(length: number): GrpcStatus {
    const message = `response too large: ${length} bytes, at most ${this.#options.maxMessageSize}`
    return { code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "ExecutionFailed" }
  }

  #fail(status: GrpcStatus): void {
    if (this.#done) return
    this.#abandon()
    this.#responder.fail(status)
  }

  #abandon(): void {
    this.#done = true
    this.#options.gateway.stopping.removeEventListener("abort", this.#onStop)
    clearTimeout(this.#deadlineTimer)
    this.#release()
    this.#unread.length = 0
    this.#results.cancel()
    // What is still to come is dropped, not left waiting.
    if (this.#isPaused) this.#responder.resume()
  }

  #defect(defect: unknown): void {
    this.#options.logDefect(defect)
    this.#fail(internal)
  }
}

const late: GrpcStatus = { code: GrpcCode.DEADLINE_EXCEEDED, message: "Deadline Exceeded", tag: "DeadlineExceeded" }

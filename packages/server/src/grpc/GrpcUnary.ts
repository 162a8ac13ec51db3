/**
 * One unary ModelInfer over gRPC, without a framework: collects the message, asks the gateway, answers. It knows no
 * implementation of HTTP/2 (Call.ts).
 *
 *   onData … ─► whole message ─► decode ─► gateway.infer ─► responder.reply │ responder.fail
 *     │ too large, compressed, a second one,                   │ onClose before the answer: cancel
 *     │ too much of all callers together: fail at once
 *   onEnd, or too much time, before the message is whole: fail
 *
 * It asks at the message's last byte and does not wait for the end of the stream: the length says all there is to know,
 * and an end also comes when the caller breaks off.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/Inference"
import * as ProtobufCodec from "@nereid/core/ProtobufCodec"
import { fromError, type GrpcStatus, internal, shuttingDown } from "./GrpcStatus.ts"
import * as GrpcTimeout from "./GrpcTimeout.ts"
import type { CallMetadata, CallOptions, Receiver, Responder } from "./Call.ts"
import { messageLength, MessageParts, prefixLength } from "./MessageParts.ts"
import * as Timer from "../port/Timer.ts"

export class UnaryCall implements Receiver {
  readonly #options: CallOptions
  readonly #responder: Responder
  readonly #deadline: number | undefined
  readonly #prepare: CallMetadata["prepare"]
  /** Of prefix and message together; unknown until the prefix is there. */
  #expected: number | undefined
  #received = 0
  readonly #parts: MessageParts
  #timer: NodeJS.Timeout | undefined
  /** Set from the message's last byte to the answer. */
  #cancel: Cancel | undefined
  #asked = false
  /** Answered, failed or gone: whatever comes now is ignored. */
  #done = false

  constructor(options: CallOptions, responder: Responder, { timeout, prepare }: CallMetadata) {
    this.#options = options
    this.#parts = new MessageParts(options.receiveBudget)
    this.#responder = responder
    this.#prepare = prepare
    const deadline = GrpcTimeout.deadline(timeout)
    if (Result.isFailure(deadline)) {
      this.#fail(deadline.failure)
      return
    }
    this.#deadline = deadline.success
    this.#timer = Timer.start(() => this.#failLate(), options.receiveTimeoutMillis)
  }

  onData(chunk: Uint8Array): void {
    if (this.#done) return
    this.#received += chunk.length
    if (this.#asked) return this.#failExtra()
    if (this.#expected === undefined) {
      if (this.#received < prefixLength) return this.#hold(chunk)
      const length = messageLength(this.#parts.join(chunk), this.#options.maxMessageSize)
      if (Result.isFailure(length)) return this.#fail(length.failure)
      this.#expected = prefixLength + length.success
    }
    if (this.#received < this.#expected) return this.#hold(chunk)
    if (this.#received > this.#expected) return this.#failExtra()
    const message = this.#parts.join(chunk)
    this.#release()
    this.#ask(message)
  }

  /** The caller has sent everything. */
  onEnd(): void {
    if (this.#done || this.#asked) return
    if (this.#received === 0) {
      const message = "received no message, a unary call has exactly one"
      return this.#fail({ code: GrpcCode.UNIMPLEMENTED, message, tag: "Unsupported" })
    }
    const message = `incomplete message: ${this.#progress()}`
    this.#fail({ code: GrpcCode.INVALID_ARGUMENT, message, tag: "InvalidRequest" })
  }

  /** The stream is gone: nobody waits for an answer any more. */
  onClose(): void {
    if (!this.#done) this.#abandon()
  }

  #progress(): string {
    return `${this.#received} bytes with its prefix, expected ${this.#expected ?? `at least ${prefixLength}`}`
  }

  #hold(chunk: Uint8Array): void {
    const problem = this.#parts.hold(chunk)
    if (problem !== undefined) this.#fail(problem)
  }

  /** Nothing more is to be received. */
  #release(): void {
    clearTimeout(this.#timer)
    this.#parts.release()
  }

  #ask(message: Uint8Array): void {
    this.#asked = true
    if (this.#options.gateway.stopping.aborted) return this.#fail(fromError(shuttingDown))
    const wire = Result.flatMap(ProtobufCodec.decode(message, prefixLength), this.#prepare)
    if (Result.isFailure(wire)) return this.#fail(fromError(wire.failure))
    try {
      const cancel = this.#options.gateway.infer(wire.success, this.#deadline, (outcome) => {
        this.#cancel = undefined
        if (this.#done) return
        if (Result.isFailure(outcome)) return this.#fail(fromError(outcome.failure))
        this.#guard(() => {
          const frame = ProtobufCodec.encode(outcome.success, prefixLength)
          const length = frame.length - prefixLength
          if (length > this.#options.maxMessageSize) return this.#failLarge(length)
          new DataView(frame.buffer).setUint32(1, length)
          this.#done = true
          this.#responder.reply(frame)
        })
      })
      if (!this.#done) this.#cancel = cancel
    } catch (defect) {
      this.#defect(defect)
    }
  }

  #failExtra(): void {
    const message = "received more than one message, a unary call has exactly one"
    this.#fail({ code: GrpcCode.UNIMPLEMENTED, message, tag: "Unsupported" })
  }

  #failLarge(length: number): void {
    const message = `response too large: ${length} bytes, at most ${this.#options.maxMessageSize}`
    this.#fail({ code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "ExecutionFailed" })
  }

  #failLate(): void {
    const limit = this.#options.receiveTimeoutMillis
    const message = `the message did not arrive within ${limit} ms: ${this.#progress()}`
    this.#fail({ code: GrpcCode.DEADLINE_EXCEEDED, message, tag: "DeadlineExceeded" })
  }

  #fail(status: GrpcStatus): void {
    this.#abandon()
    this.#guard(() => this.#responder.fail(status))
  }

  #abandon(): void {
    this.#done = true
    this.#release()
    this.#cancel?.()
    this.#cancel = undefined
  }

  #guard(answer: () => void): void {
    try {
      answer()
    } catch (defect) {
      this.#defect(defect)
    }
  }

  #defect(defect: unknown): void {
    this.#options.logDefect(defect)
    if (!this.#done) this.#fail(internal)
  }
}

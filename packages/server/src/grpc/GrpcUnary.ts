/**
 * One unary ModelInfer over gRPC, without a framework: collects the message, asks the gateway, answers. It knows no
 * HTTP/2 implementation; GrpcStream.ts drives it from node:http2.
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
import type { Gateway } from "../Gateway.ts"
import type { Prepare } from "../Preparation.ts"
import { fromError, type GrpcStatus, internal, shuttingDown } from "./GrpcStatus.ts"
import * as GrpcTimeout from "./GrpcTimeout.ts"
import type { ReceiveBudget } from "../port/ReceiveBudget.ts"
import * as Timer from "../port/Timer.ts"

/** Where the answer goes. One of the two is called, at most once, and never after `onClose`. */
export interface Responder {
  /** A message with its prefix. */
  readonly reply: (frame: Uint8Array) => void
  readonly fail: (status: GrpcStatus) => void
}

/** What the call says about itself. */
export interface CallMetadata {
  /** Its `grpc-timeout`. */
  readonly timeout: string | undefined
  /** What is to be done with its request ahead of anything else. */
  readonly prepare: Prepare
}

export interface UnaryOptions {
  readonly gateway: Gateway
  /** The most bytes of a message. */
  readonly maxMessageSize: number
  /** How long a message may take to arrive. */
  readonly receiveTimeoutMillis: number
  /** For messages that are not whole; shared by all calls. */
  readonly receiveBudget: ReceiveBudget
  readonly logDefect: (defect: unknown) => void
}

/** Compressed flag and length. */
const prefixLength = 5

/** What keeping a chunk costs beside its bytes, so that single bytes do not come cheaper than they are. */
const chunkCost = 256

/** A chunk is a view of what was read from its socket, and keeps all of that; a copy of a small one does not. */
const smallPart = 1 / 8

export class UnaryCall {
  readonly #options: UnaryOptions
  readonly #responder: Responder
  readonly #deadline: number | undefined
  readonly #prepare: CallMetadata["prepare"]
  /** Of prefix and message together; unknown until the prefix is there. */
  #expected: number | undefined
  #received = 0
  #chunks: Array<Uint8Array> = []
  /** Taken from the budget for the chunks. */
  #held = 0
  #timer: NodeJS.Timeout | undefined
  /** Set from the message's last byte to the answer. */
  #cancel: Cancel | undefined
  #asked = false
  /** Answered, failed or gone: whatever comes now is ignored. */
  #done = false

  constructor(options: UnaryOptions, responder: Responder, { timeout, prepare }: CallMetadata) {
    this.#options = options
    this.#responder = responder
    this.#prepare = prepare
    if (timeout !== undefined) {
      const milliseconds = GrpcTimeout.parse(timeout)
      if (milliseconds === undefined) {
        const message = `invalid grpc-timeout '${timeout}'`
        this.#fail({ code: GrpcCode.INVALID_ARGUMENT, message, tag: "InvalidRequest" })
        return
      }
      this.#deadline = Date.now() + milliseconds
    }
    this.#timer = Timer.start(() => this.#failLate(), options.receiveTimeoutMillis)
  }

  onData(chunk: Uint8Array): void {
    if (this.#done) return
    this.#received += chunk.length
    if (this.#asked) return this.#failExtra()
    if (this.#expected === undefined) {
      if (this.#received < prefixLength) return this.#hold(chunk)
      const length = this.#readPrefix(this.#join(chunk))
      if (length === undefined) return
      this.#expected = prefixLength + length
    }
    if (this.#received < this.#expected) return this.#hold(chunk)
    if (this.#received > this.#expected) return this.#failExtra()
    const message = this.#join(chunk).subarray(prefixLength)
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

  #readPrefix(prefix: Uint8Array): number | undefined {
    const view = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength)
    const flag = view.getUint8(0)
    const length = view.getUint32(1)
    const { maxMessageSize } = this.#options
    if (flag === 1) {
      const message = "received a compressed message, but no grpc-encoding says how to decompress it"
      this.#fail({ code: GrpcCode.INTERNAL, message, tag: "MalformedRequest" })
    } else if (flag !== 0) {
      const message = `invalid compressed flag ${flag} of a message, expected 0 or 1`
      this.#fail({ code: GrpcCode.INTERNAL, message, tag: "MalformedRequest" })
    } else if (length > maxMessageSize) {
      const message = `message too large: ${length} bytes, at most ${maxMessageSize}`
      this.#fail({ code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "InvalidRequest" })
    } else {
      return length
    }
    return undefined
  }

  #progress(): string {
    return `${this.#received} bytes with its prefix, expected ${this.#expected ?? `at least ${prefixLength}`}`
  }

  #hold(chunk: Uint8Array): void {
    const cost = chunk.length + chunkCost
    const message = this.#options.receiveBudget.take(cost)
    if (message !== undefined) return this.#fail({ code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "QueueFull" })
    this.#held += cost
    const isSmallPart = chunk.length < chunk.buffer.byteLength * smallPart
    this.#chunks.push(isSmallPart ? new Uint8Array(chunk) : chunk)
  }

  /** With the chunk that has just come. */
  #join(last: Uint8Array): Uint8Array {
    return this.#chunks.length === 0 ? last : Buffer.concat([...this.#chunks, last], this.#received)
  }

  /** Nothing more is to be received. */
  #release(): void {
    clearTimeout(this.#timer)
    this.#chunks = []
    this.#options.receiveBudget.give(this.#held)
    this.#held = 0
  }

  #ask(message: Uint8Array): void {
    this.#asked = true
    if (this.#options.gateway.stopping.aborted) return this.#fail(fromError(shuttingDown))
    const wire = Result.flatMap(ProtobufCodec.decode(message), this.#prepare)
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

/**
 * One unary ModelInfer over gRPC, without a framework: collects the message, asks the gateway, answers. It knows no
 * HTTP/2 implementation; GrpcStream.ts drives it from node:http2.
 *
 *   onData … ─► whole message ─► decode ─► gateway.infer ─► responder.reply │ responder.fail
 *     │ too large, compressed, a second one: fail at once      │ onClose before the answer: cancel
 *   onEnd before the message is whole: fail
 *
 * It asks at the message's last byte and does not wait for the end of the stream: the length says all there is to know,
 * and an end also comes when the caller breaks off.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import type { Cancel } from "@nereid/core/Inference"
import * as ProtobufCodec from "@nereid/core/ProtobufCodec"
import type { Gateway } from "./Gateway.ts"
import { fromError, type GrpcStatus, internal } from "./GrpcStatus.ts"
import * as GrpcTimeout from "./GrpcTimeout.ts"

/** Where the answer goes. One of the two is called, at most once, and never after `onClose`. */
export interface Responder {
  /** A message with its prefix. */
  readonly reply: (frame: Uint8Array) => void
  readonly fail: (status: GrpcStatus) => void
}

export interface UnaryOptions {
  readonly gateway: Gateway
  /** The most bytes of a message. */
  readonly maxMessageSize: number
  readonly logDefect: (defect: unknown) => void
}

/** Compressed flag and length. */
const prefixLength = 5

export class UnaryCall {
  readonly #options: UnaryOptions
  readonly #responder: Responder
  readonly #deadline: number | undefined
  /** Of prefix and message together; unknown until the prefix is there. */
  #expected: number | undefined
  #received = 0
  #chunks: Array<Uint8Array> = []
  /** Set from the message's last byte to the answer. */
  #cancel: Cancel | undefined
  #asked = false
  /** Answered, failed or gone: whatever comes now is ignored. */
  #done = false

  constructor(options: UnaryOptions, responder: Responder, timeout: string | undefined) {
    this.#options = options
    this.#responder = responder
    if (timeout === undefined) return
    const milliseconds = GrpcTimeout.parse(timeout)
    if (milliseconds === undefined) {
      this.#fail({
        code: GrpcCode.INVALID_ARGUMENT,
        message: `invalid grpc-timeout '${timeout}'`,
        tag: "InvalidRequest",
      })
    } else {
      this.#deadline = Date.now() + milliseconds
    }
  }

  onData(chunk: Uint8Array): void {
    if (this.#done) return
    this.#received += chunk.length
    if (this.#asked) return this.#failExtra()
    this.#chunks.push(chunk)
    if (this.#expected === undefined) {
      if (this.#received < prefixLength) return
      const prefix = this.#join()
      this.#chunks = [prefix]
      const length = this.#readPrefix(prefix)
      if (length === undefined) return
      this.#expected = prefixLength + length
    }
    if (this.#received < this.#expected) return
    if (this.#received > this.#expected) return this.#failExtra()
    const message = this.#join().subarray(prefixLength)
    this.#chunks = []
    this.#ask(message)
  }

  /** The caller has sent everything. */
  onEnd(): void {
    if (this.#done || this.#asked) return
    if (this.#received === 0) {
      const message = "received no message, a unary call has exactly one"
      return this.#fail({ code: GrpcCode.UNIMPLEMENTED, message, tag: "Unsupported" })
    }
    const expected = this.#expected ?? `at least ${prefixLength}`
    const message = `incomplete message: ${this.#received} bytes with its prefix, expected ${expected}`
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

  #join(): Uint8Array {
    const [first, second] = this.#chunks
    return first !== undefined && second === undefined ? first : Buffer.concat(this.#chunks, this.#received)
  }

  #ask(message: Uint8Array): void {
    this.#asked = true
    const wire = ProtobufCodec.decode(message)
    if (Result.isFailure(wire)) return this.#fail(fromError(wire.failure))
    try {
      const cancel = this.#options.gateway.infer(wire.success, this.#deadline, (outcome) => {
        this.#cancel = undefined
        if (this.#done) return
        if (Result.isFailure(outcome)) return this.#fail(fromError(outcome.failure))
        this.#guard(() => {
          const frame = ProtobufCodec.encode(outcome.success, prefixLength)
          new DataView(frame.buffer).setUint32(1, frame.length - prefixLength)
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

  #fail(status: GrpcStatus): void {
    this.#abandon()
    this.#guard(() => this.#responder.fail(status))
  }

  #abandon(): void {
    this.#done = true
    this.#chunks = []
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

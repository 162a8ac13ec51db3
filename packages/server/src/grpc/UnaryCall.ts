/**
 * One unary ModelInfer over gRPC, without a framework: reads the message, calls the gateway and responds. Its HTTP/2
 * implementation is behind the interfaces of Call.ts.
 *
 *   onData … ─► whole message ─► decode ─► gateway.infer ─► stream.reply │ stream.fail
 *     │ too large, compressed, a second one,                   │ onClose before the response: cancel
 *     │ memory budget of all calls exceeded,
 *     │ queue too long by its first bytes: fail at once
 *   onEnd, or a timeout, before the message is complete: fail
 *
 * The call goes to the gateway at the last byte of the message, and does not wait for the end of the stream. The length
 * says where the message ends, and the stream also ends when the caller disconnects.
 */
import { Result } from "effect"
import { Unsupported } from "@nereid/core/Errors"
import { isWhole, prefixLength, writePrefix } from "@nereid/core/internal/grpc/GrpcFrame"
import type { Cancel } from "@nereid/core/internal/request/Request"
import * as ProtobufCodec from "@nereid/core/internal/codec/protobuf/ProtobufCodec"
import type { WireRequest, WireResponse } from "@nereid/core/internal/wire/WireRequest"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { Call, CallStream } from "./Call.ts"
import { type ReceiveTimeout, ReceivingCall } from "./ReceiveTimeout.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { InferenceReply } from "../dispatch/InferenceDispatch.ts"
import type { CallRecord } from "../log/CallRecord.ts"
import { type MessageLimits, RequestMessageReader } from "./RequestMessageReader.ts"
import type { RequestPreparation } from "../gateway/RequestPreparation.ts"
import * as CallStatus from "./CallStatus.ts"
import * as QueuePreview from "./QueuePreview.ts"
import type { ReceivedMemory } from "../memory/ReceivedMemory.ts"

export interface GrpcCallOptions extends MessageLimits {
  readonly gateway: Gateway
  /** For messages that have not arrived completely. */
  readonly receiveTimeout: ReceiveTimeout
  readonly logDefect: (defect: unknown) => void
}

/** Values from the headers of a call. */
export interface CallMetadata {
  /** Deadline, as MonotonicTime; undefined for none. */
  readonly deadline: number | undefined
  /** Applied to each of its requests before anything else. */
  readonly prepare: RequestPreparation
  /** Record of the call; undefined if none is kept. */
  readonly record: CallRecord | undefined
}

const path = `${GRPCInferenceService.typeName}/${GRPCInferenceService.method.modelInfer.name}`

export class UnaryCall extends ReceivingCall implements Call {
  readonly #options: GrpcCallOptions
  readonly #stream: CallStream
  readonly #metadata: CallMetadata
  /** Reads a message that arrives in parts. */
  #reader: RequestMessageReader | undefined
  /** Set from the last byte of the message to the response. */
  #cancel: Cancel | undefined
  #hasMessage = false
  /** Memory of a large message that arrived in parts. */
  #memory: ReceivedMemory | undefined
  /** Bytes of the response, held until the stream has closed. */
  #held = 0
  /** Whether the call is over. Later events are ignored. */
  #done = false
  /** The status for the record. */
  #status = "CANCELLED"

  constructor(options: GrpcCallOptions, stream: CallStream, metadata: CallMetadata) {
    super()
    this.#options = options
    this.#stream = stream
    this.#metadata = metadata
    options.receiveTimeout.add(this)
  }

  onData(chunk: Uint8Array): boolean {
    if (this.#done || chunk.length === 0) return false
    if (this.#hasMessage) return this.#failExtra()
    const { gateway } = this.#options
    const isFirst = this.#reader === undefined
    const late = isFirst
      ? QueuePreview.refusal(gateway, chunk, this.#metadata.deadline, this.#stream.memory)
      : undefined
    if (late !== undefined) {
      this.fail(late)
      return false
    }
    if (isFirst && isWhole(chunk, this.#options.maxMessageSize)) {
      this.#infer(chunk, prefixLength, chunk.length)
      return true
    }
    const reader = (this.#reader ??= new RequestMessageReader(this.#options, this.#stream.memory))
    reader.add(chunk)
    if (reader.next()) {
      if (!reader.isBetween) return this.#failExtra()
      this.#memory = reader.memory
      this.#infer(reader.bytes, reader.start, reader.end)
    } else if (reader.failure !== undefined) this.fail(reader.failure)
    return reader.keepsChunk
  }

  /** The caller has sent everything. */
  onEnd(): void {
    if (this.#done || this.#hasMessage) return
    if (this.#reader === undefined) {
      const message = "received no message, expected exactly one in a unary call"
      return this.fail(CallStatus.fromError(new Unsupported({ message })))
    }
    this.fail(CallStatus.incomplete(this.#reader.progress))
  }

  onDrain(): void {}

  /** The stream has closed. A response is no longer needed. */
  onClose(): void {
    if (!this.#done) this.#abandon()
    this.#stream.memory.give(this.#held)
    this.#metadata.record?.end(path, this.#status)
  }

  override get received(): number {
    return this.#reader?.received ?? 0
  }

  /** The message did not arrive in time. */
  override expire(reason: "late" | "slow"): void {
    const { milliseconds } = this.#options.receiveTimeout
    const progress = this.#reader?.progress ?? "received no bytes"
    this.#options.gateway.limits.acted(
      "receive_time",
      `Ended a call, because its message did not arrive in time: ${progress}`,
    )
    this.fail(reason === "late" ? CallStatus.late(milliseconds, progress) : CallStatus.slow(progress))
  }

  /** Calls the gateway with the message, which is in `bytes` from `start` to `end`. */
  #infer(bytes: Uint8Array, start: number, end: number): void {
    this.#hasMessage = true
    this.#release()
    const { gateway } = this.#options
    if (gateway.refusing.aborted) return this.fail(CallStatus.fromError(CallStatus.shuttingDown))
    const { deadline, prepare } = this.#metadata
    const decoded = Result.flatMap(ProtobufCodec.decode(bytes, start, end), prepare)
    if (Result.isFailure(decoded)) return this.fail(CallStatus.fromError(decoded.failure))
    const wire = this.#withMemory(decoded.success)
    try {
      const cancel = gateway.infer(wire, deadline, (outcome) => this.#onOutcome(outcome), this.#stream.memory)
      if (!this.#done) this.#cancel = cancel
    } catch (defect) {
      this.#defect(defect)
    }
  }

  #onOutcome(outcome: Parameters<InferenceReply>[0]): void {
    this.#cancel = undefined
    if (this.#done) return
    if (Result.isFailure(outcome)) return this.fail(CallStatus.fromError(outcome.failure))
    try {
      this.#reply(outcome.success)
    } catch (defect) {
      this.#defect(defect)
    }
  }

  #reply(response: WireResponse): void {
    const frame = ProtobufCodec.encode(response, prefixLength, Buffer.allocUnsafe)
    response.release?.()
    if (this.#memory?.isFree === true) this.#memory.free()
    this.#memory = undefined
    const length = frame.length - prefixLength
    const { maxMessageSize } = this.#options
    if (length > maxMessageSize) return this.fail(CallStatus.tooLarge(length, maxMessageSize))
    const full = this.#stream.memory.takeResponse(frame.length)
    if (full !== undefined) return this.fail(CallStatus.exhausted(full))
    this.#held = frame.length
    writePrefix(frame, 0, length)
    this.#done = true
    this.#status = "OK"
    this.#stream.reply(frame)
  }

  /** Says which memory the message has, and lends it to the model. */
  #withMemory(wire: WireRequest): WireRequest {
    const memory = this.#memory
    if (memory === undefined) return wire
    const model = this.#options.gateway.model(wire.modelName, wire.modelVersion)
    if (Result.isSuccess(model)) memory.lend(model.success.calls)
    return { ...wire, memory }
  }

  #failExtra(): false {
    const message = "received more than one message, expected exactly one in a unary call"
    this.fail(CallStatus.fromError(new Unsupported({ message })))
    return false
  }

  /** Ends the call with a status that is not OK. */
  fail(status: CallStatus.CallStatus): void {
    this.#abandon()
    this.#status = CallStatus.name(status.code)
    this.#stream.fail(status)
  }

  #abandon(): void {
    this.#done = true
    this.#release()
    this.#cancel?.()
    this.#cancel = undefined
  }

  /** Ends receiving: frees the parts of a message and its time limit. */
  #release(): void {
    this.#options.receiveTimeout.remove(this)
    this.#reader?.release()
  }

  #defect(defect: unknown): void {
    this.#options.logDefect(defect)
    if (!this.#done) this.fail(CallStatus.internal)
  }
}

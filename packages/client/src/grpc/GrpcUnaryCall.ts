/** One unary call: reads the only message of its response. */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import { isWhole, prefixLength } from "@nereid/core/internal/grpc/GrpcFrame"
import type { ResponseMessageReader } from "@nereid/core/internal/grpc/ResponseMessageReader"
import type { ResponseHeaders } from "./CallHeaders.ts"
import { ClientCall, view } from "./ClientCall.ts"
import * as GrpcFailure from "./GrpcFailure.ts"

export interface GrpcResponse {
  readonly headers: ResponseHeaders
  /** A view on received memory, and not a Buffer, whose slice() would not copy. */
  readonly message: Uint8Array
  readonly trailers: ResponseHeaders
}

export type GrpcOutcome = Result.Result<GrpcResponse, GrpcFailure.GrpcFailure>

export class GrpcUnaryCall extends ClientCall<GrpcResponse> {
  #message: Uint8Array | undefined
  /** Reads a message that arrives in parts. */
  #reader: ResponseMessageReader<Uint8Array> | undefined

  override onData(chunk: Uint8Array): boolean {
    if (this.isOver || chunk.length === 0) return false
    if (this.#message !== undefined) return this.#refuseExtra()
    if (this.#reader === undefined && isWhole(chunk, this.limit)) {
      this.#message = view(chunk, prefixLength, chunk.length)
      return true
    }
    const reader = (this.#reader ??= this.makeReader())
    reader.add(chunk)
    if (reader.next()) {
      if (!reader.isBetween) return this.#refuseExtra()
      this.#message = view(reader.bytes, reader.start, reader.end)
      return reader.bytes === chunk
    }
    if (reader.refusal !== undefined) this.refuseMessage(reader, "the reply")
    return false
  }

  protected override onStatus(trailers: ResponseHeaders): void {
    const status = GrpcFailure.fromTrailers(trailers)
    if (status === undefined) return
    if (Result.isFailure(status)) {
      this.stopSending()
      return this.fail(status.failure)
    }
    // Without a complete message, its last bytes may still be in the stream until it closes.
    if (this.#message !== undefined) this.#succeed(this.#message, trailers)
  }

  override onEnd(): void {}

  protected override onClosed(): void {
    const { trailers } = this
    const status = trailers && GrpcFailure.fromTrailers(trailers)
    if (trailers === undefined || status === undefined || Result.isFailure(status)) return
    if (this.#message !== undefined) return this.#succeed(this.#message, trailers)
    this.fail(GrpcFailure.failure(GrpcCode.INTERNAL, "the server sent no complete message"))
  }

  #succeed(message: Uint8Array, trailers: ResponseHeaders): void {
    this.settle(Result.succeed({ headers: this.responseHeaders ?? {}, message, trailers }))
  }

  #refuseExtra(): false {
    this.refuse(GrpcFailure.failure(GrpcCode.INTERNAL, "the server sent more than one message"))
    return false
  }
}

/**
 * One call that is answered by any number of messages. Its receiver may pause it: the window of its stream then fills,
 * and the server waits.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/internal/grpc/GrpcCode"
import type { CallHeaders } from "./CallHeaders.ts"
import { ClientCall, view } from "./ClientCall.ts"
import * as GrpcFailure from "./GrpcFailure.ts"
import type { CallConnection } from "./StartableCall.ts"

export interface GrpcReceiver {
  /** Takes the next message: a view on received memory, and not a Buffer, whose slice() would not copy. */
  readonly message: (message: Uint8Array) => void
  /** Takes the end, once, after all messages; not after a cancel. */
  readonly end: (outcome: Result.Result<void, GrpcFailure.GrpcFailure>) => void
}

export class GrpcStreamCall extends ClientCall<void> {
  readonly #receiver: GrpcReceiver
  readonly #reader = this.makeReader()
  #hasEnded = false

  constructor(
    connection: CallConnection,
    headers: CallHeaders,
    frame: Uint8Array,
    limit: number,
    receiver: GrpcReceiver,
  ) {
    super(connection, headers, frame, limit, receiver.end)
    this.#receiver = receiver
  }

  override onEnd(): void {
    this.#hasEnded = true
    this.#endIfComplete()
  }

  pause(): void {
    this.stream?.pause()
  }

  resume(): void {
    this.stream?.resume()
  }

  override onData(chunk: Uint8Array): boolean {
    const reader = this.#reader
    if (this.isOver) return false
    reader.add(chunk)
    let isViewed = false
    while (reader.next()) {
      if (reader.bytes === chunk) isViewed = true
      this.#receiver.message(view(reader.bytes, reader.start, reader.end))
      if (this.isOver) return isViewed
    }
    if (reader.refusal !== undefined) this.refuseMessage(reader, "a response")
    return isViewed
  }

  protected override onStatus(): void {
    this.#endIfComplete()
  }

  protected override onClosed(): void {
    const status = this.trailers && GrpcFailure.fromTrailers(this.trailers)
    if (status !== undefined && Result.isFailure(status)) this.fail(status.failure)
  }

  #endIfComplete(): void {
    if (!this.#hasEnded || this.trailers === undefined) return
    const status = GrpcFailure.fromTrailers(this.trailers)
    if (status === undefined) return
    this.stopSending()
    if (Result.isFailure(status)) return this.fail(status.failure)
    if (this.#reader.isBetween) return this.settle(Result.void)
    this.fail(GrpcFailure.failure(GrpcCode.INTERNAL, "the server's last message is not complete"))
  }
}

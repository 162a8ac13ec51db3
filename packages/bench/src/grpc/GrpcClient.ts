/** Unary gRPC calls for information about the server, before and after a load. The load itself uses other modules. */
import { ResponseMessageReader } from "@nereid/core/internal/grpc/ResponseMessageReader"
import type { Address } from "../target/Address.ts"
import { type Headers, Http2Connection } from "../http2/Http2Connection.ts"
import * as GrpcRequest from "./GrpcRequest.ts"
import * as ReplyProblem from "./ReplyProblem.ts"

/** A call that the server answered with an error, or did not answer. */
export class GrpcCallError extends Error {
  /** Number of the gRPC status; undefined if the server sent none. */
  readonly status: number | undefined

  constructor(message: string, status: number | undefined) {
    super(message)
    this.status = status
  }
}

export class GrpcClient {
  readonly #address: Address
  readonly #metadata: Readonly<Record<string, string>>
  #connection: Http2Connection | undefined

  constructor(address: Address, metadata: Readonly<Record<string, string>>) {
    this.#address = address
    this.#metadata = metadata
  }

  /**
   * Calls a method of the service with one message and gives those of the reply: one, or any number where it streams.
   * @throws CallError
   */
  async call(method: string, message: Uint8Array): Promise<ReadonlyArray<Buffer>> {
    const fields = GrpcRequest.fields(this.#address, `${GrpcRequest.service}/${method}`, this.#metadata)
    if (this.#connection?.accepts !== true) this.#connection = await Http2Connection.open(this.#address, fields)
    const connection = this.#connection
    const { promise, resolve, reject } = Promise.withResolvers<ReadonlyArray<Buffer>>()
    const messages: Array<Buffer> = []
    let head: Headers | undefined
    const reader = new ResponseMessageReader<Buffer>(Infinity, Buffer.allocUnsafe)
    const fail = (reason: string, status?: string) =>
      reject(new GrpcCallError(`${method}: ${reason}`, status === undefined ? undefined : Number(status)))
    connection.request(
      {
        onHeaders: (headers, last) => {
          const status = ReplyProblem.text(headers["grpc-status"])
          const wrong = head === undefined && status === undefined ? ReplyProblem.ofHead(headers) : undefined
          head ??= headers
          const problem = wrong ?? (last ? ReplyProblem.ofTrailers(headers) : undefined)
          if (problem !== undefined) fail(problem, status)
          else if (last && !reader.isBetween) fail("the response contains no complete message")
          else if (last) resolve(messages)
        },
        onData: (part, last) => {
          reader.add(part)
          while (reader.next()) messages.push(Buffer.from(reader.bytes.subarray(reader.start, reader.end)))
          if (reader.refusal !== undefined) fail(ReplyProblem.compressed)
          else if (last) fail("the response has no trailers")
        },
        onAbort: (reason) => fail(reason),
      },
      [GrpcRequest.frame(message)],
      true,
      fields,
    )
    const timer = setTimeout(() => fail(`no response within ${callTimeout / 1000} s`), callTimeout)
    return promise.finally(() => clearTimeout(timer))
  }

  close(): void {
    this.#connection?.close()
  }
}

/** Timeout in milliseconds; a first request may wait for the model's warm-up. */
const callTimeout = 60_000

/** Requests of a sequence over one HTTP/2 connection, each of which its caller may reset. Replies come as they are. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import * as GrpcFrame from "@nereid/core/internal/grpc/GrpcFrame"
import {
  GRPCInferenceService,
  ModelInferResponseSchema,
  ModelStreamInferResponseSchema,
  ServerLiveRequestSchema,
} from "@nereid/protocol/grpc_service"
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2"
import type { Step } from "./Scenario.ts"
import { type Answer, inferRequest, outputOf } from "./SequenceCalls.ts"

/** A call of one request. */
export interface Unary {
  /** The element of OUTPUT, the message of the error, or "reset". */
  readonly answer: Promise<Answer>
  /** Resets the stream of the call, as a client does that cancels it. */
  readonly cancel: () => void
}

/** A call of any number of requests. */
export interface Stream {
  readonly send: (step: Step) => void
  /** The next answer; "reset" or "closed" after the last one. */
  readonly next: () => Promise<Answer>
  /** Ends the side of the client. */
  readonly halfClose: () => void
  readonly cancel: () => void
}

export class GrpcCalls {
  readonly #session: ClientHttp2Session
  readonly #model: string
  readonly #batches: boolean

  private constructor(session: ClientHttp2Session, model: string, batches: boolean) {
    this.#session = session
    this.#model = model
    this.#batches = batches
  }

  static open(port: number, model: string, batches: boolean): Promise<GrpcCalls> {
    return new Promise((resolve, reject) => {
      const session = connect(`http://127.0.0.1:${port}`, () => resolve(new GrpcCalls(session, model, batches)))
      session.on("error", reject)
    })
  }

  /** Destroys the connection with all its calls. */
  close(): void {
    this.#session.destroy()
  }

  unary(step: Step): Unary {
    const stream = this.#request("ModelInfer")
    const answers = replies(stream, (bytes) => outputOf(fromBinary(ModelInferResponseSchema, bytes)))
    stream.end(this.#message(step))
    return { answer: answers(), cancel: () => stream.close(constants.NGHTTP2_CANCEL) }
  }

  stream(): Stream {
    const stream = this.#request("ModelStreamInfer")
    const next = replies(stream, (bytes) => {
      const { errorMessage, inferResponse } = fromBinary(ModelStreamInferResponseSchema, bytes)
      return inferResponse === undefined || errorMessage !== "" ? errorMessage : outputOf(inferResponse)
    })
    return {
      send: (step) => void stream.write(this.#message(step)),
      next,
      halfClose: () => void stream.end(),
      cancel: () => stream.close(constants.NGHTTP2_CANCEL),
    }
  }

  /** Completes when the server has read all that was sent before. */
  async read(): Promise<void> {
    const stream = this.#request("ServerLive")
    const next = replies(stream, () => 1)
    stream.end(GrpcFrame.frame(toBinary(ServerLiveRequestSchema, create(ServerLiveRequestSchema))))
    await next()
  }

  #message(step: Step): Uint8Array {
    return GrpcFrame.frame(inferRequest(step, this.#model, this.#batches))
  }

  #request(method: string): ClientHttp2Stream {
    const stream = this.#session.request({
      [constants.HTTP2_HEADER_METHOD]: "POST",
      [constants.HTTP2_HEADER_PATH]: `/${GRPCInferenceService.typeName}/${method}`,
      "content-type": "application/grpc",
      te: "trailers",
    })
    stream.on("error", () => {})
    return stream
  }
}

/** Answers of a call, one by one: its messages, then its status. */
const replies = (stream: ClientHttp2Stream, decode: (message: Uint8Array) => Answer): (() => Promise<Answer>) => {
  const answers: Array<Answer> = []
  const waiting: Array<(answer: Answer) => void> = []
  let end: Answer | undefined
  let failure: string | undefined
  let bytes = Buffer.alloc(0)
  const settle = () => {
    while (waiting.length > 0) {
      const answer = answers.shift() ?? end
      if (answer === undefined) return
      waiting.shift()?.(answer)
    }
  }
  const onFields = (fields: Readonly<Record<string, unknown>>) => {
    if (fields["grpc-status"] === undefined || fields["grpc-status"] === "0") return
    failure = decodeURIComponent(String(fields["grpc-message"] ?? ""))
  }
  stream.on("response", onFields)
  stream.on("trailers", onFields)
  stream.on("data", (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk])
    while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
      const length = bytes.readUInt32BE(1)
      answers.push(decode(bytes.subarray(5, 5 + length)))
      bytes = bytes.subarray(5 + length)
    }
    settle()
  })
  stream.on("close", () => {
    end = failure ?? (stream.rstCode === constants.NGHTTP2_NO_ERROR ? "closed" : "reset")
    settle()
  })
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      settle()
    })
}

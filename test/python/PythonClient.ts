/** The calls of a client that both transports have, so that one case runs over each of them. */
import type { JsonTensor } from "./PythonRepository.ts"

export const transports = ["HTTP", "gRPC"] as const

export type Transport = (typeof transports)[number]

/** Codes of answers, by their HTTP status and their gRPC code. */
export const codes = {
  OK: { HTTP: 200, gRPC: 0 },
  CANCELLED: { HTTP: 400, gRPC: 1 },
  UNKNOWN: { HTTP: 400, gRPC: 2 },
  INVALID_ARG: { HTTP: 400, gRPC: 3 },
  NOT_FOUND: { HTTP: 404, gRPC: 5 },
  ALREADY_EXISTS: { HTTP: 400, gRPC: 6 },
  UNSUPPORTED: { HTTP: 501, gRPC: 12 },
  INTERNAL: { HTTP: 500, gRPC: 13 },
  UNAVAILABLE: { HTTP: 503, gRPC: 14 },
} as const satisfies Readonly<Record<string, Readonly<Record<Transport, number>>>>

export type Code = keyof typeof codes

/** Parameters of a request or of a response. Whole numbers travel as integers. */
export type Parameters = Readonly<Record<string, boolean | number | string>>

export interface InferOptions {
  readonly id?: string
  readonly version?: string
  readonly parameters?: Parameters
  /** Names of the requested outputs. Default: all. */
  readonly outputs?: ReadonlyArray<string>
  /** Cancels the call. */
  readonly signal?: AbortSignal
}

export interface Answer {
  /** HTTP status, or gRPC code. */
  readonly status: number
  readonly error?: string
  readonly outputs?: ReadonlyArray<JsonTensor>
  /** Undefined if there are none. */
  readonly parameters?: Readonly<Record<string, unknown>>
}

export interface IndexEntry {
  readonly name: string
  readonly state?: string
  readonly reason?: string
}

export interface PythonClient {
  readonly transport: Transport
  readonly infer: (model: string, inputs: ReadonlyArray<JsonTensor>, options?: InferOptions) => Promise<Answer>
  /**
   * First elements of the responses of a decoupled model with one input, by `generate_stream` or ModelStreamInfer;
   * `error: …` for errors.
   */
  readonly events: (model: string, input: JsonTensor, signal?: AbortSignal) => Promise<ReadonlyArray<string>>
  readonly index: () => Promise<ReadonlyArray<IndexEntry>>
  /** The configuration with the names of the .proto file. */
  readonly config: (model: string) => Promise<unknown>
  /** `parameters`: `config`, and files in base64. Returns the error; undefined after a load. */
  readonly load: (model: string, parameters?: Readonly<Record<string, string>>) => Promise<string | undefined>
  readonly unload: (model: string) => Promise<string | undefined>
  readonly isReady: (model: string) => Promise<boolean>
  readonly isServerReady: () => Promise<boolean>
}

/** The status of answers with this code, over the transport of the client. */
export const statusOf = ({ transport }: Pick<PythonClient, "transport">, code: Code): number => codes[code][transport]

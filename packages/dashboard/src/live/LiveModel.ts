/** A version of a model, as far as the live view needs it. Its signature is in the metadata of the v2 protocol. */

/**
 * Where a model came from: `code` and `remote` models are declared in code (a remote one runs on another server),
 * `onnx` is an ONNX file in code or in the repository, `script` a module in the repository, `ensemble` either.
 */
export type ModelSource = "code" | "onnx" | "script" | "ensemble" | "remote"

export type ModelState = "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING"

export interface LiveModel {
  readonly name: string
  /** Empty for a model without any loaded version. */
  readonly version: string
  readonly state: ModelState
  /** Reason for the state; empty without one. */
  readonly reason: string
  /** Details of a model that requests reach; absent for any other. */
  readonly running?: RunningDetails
}

export interface RunningDetails {
  readonly source: ModelSource
  /** Whether options are set in code or in `config.pbtxt`. */
  readonly origin: "code" | "repository"
  /** Whether its batches run in other threads than the server's. */
  readonly threaded: boolean
  readonly decoupled: boolean
  /** Maximum rows of a batch; 0 for a model that does not batch. */
  readonly maxBatchSize: number
  /** Requests that its queue may hold. */
  readonly maxQueueSize: number
  /** Milliseconds that a request waits for others. */
  readonly maxQueueDelay: number
  /** Instances; 0 for an ensemble or a remote model. */
  readonly instances: number
  readonly cache: boolean
}

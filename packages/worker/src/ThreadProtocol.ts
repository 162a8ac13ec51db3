/**
 * Messages between an instance and its thread. Tensors travel in one buffer per message (TensorBuffer.ts). Types only.
 */
import type { FamilySpec } from "@nereid/core/internal/metrics/MetricFamily"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import type { Parameters, Request } from "@nereid/core/internal/request/Request"
import type { TensorSpec } from "@nereid/core/internal/tensor/TensorSpec"
import type { PackedTensor } from "./TensorBuffer.ts"

/** `workerData`. */
export interface ThreadStart {
  /** URL of the module. */
  readonly module: string
  readonly instance: BuiltInstance
  /** Any cloneable value. */
  readonly data: unknown
}

/** A tensor of the model, as far as both sides must agree. */
export type SpecMessage = Pick<TensorSpec, "name" | "datatype" | "dims" | "optional">

/** The place of a request in its sequence. The state is among the inputs. */
export type SequenceMessage = Pick<NonNullable<Request["sequence"]>, "id" | "isStart" | "isEnd" | "isReady">

export interface RequestMessage {
  readonly id: string
  /** Tensors by position in the signature's inputs. */
  readonly inputs: ReadonlyArray<PackedTensor | undefined>
  readonly rows: number
  readonly parameters: Parameters
  /** Milliseconds until its deadline: the clocks of both sides need not agree. */
  readonly remaining: number | undefined
  readonly requestedOutputs: ReadonlyArray<string>
  /** Undefined for a model without sequences. */
  readonly sequence: SequenceMessage | undefined
}

export interface ResponseMessage {
  readonly outputs: ReadonlyArray<PackedTensor | undefined>
  readonly parameters: Parameters
  readonly isRescheduled: boolean
}

export type OutcomeMessage =
  | { readonly _tag: "Succeeded"; readonly response: ResponseMessage }
  /** `tag` is one of core's Errors. */
  | {
      readonly _tag: "Refused"
      readonly tag: string
      readonly message: string
      readonly unrecoverable: boolean
      readonly retryAfter: number | undefined
    }
  /** Failure with an error that the model declares. */
  | {
      readonly _tag: "Failed"
      readonly message: string
      readonly kind: string
      readonly http: number
      readonly grpc: number
      readonly document: string | undefined
    }

/** To the thread. Batches are called by numbers. */
export type ToThread =
  | {
      readonly _tag: "Execute"
      readonly batch: number
      readonly requests: ReadonlyArray<RequestMessage>
      readonly buffer: ArrayBuffer
    }
  /** No caller waits for the batch. */
  | { readonly _tag: "Cancel"; readonly batch: number }
  /** The last response of this request of a decoupled model was taken. */
  | { readonly _tag: "Resume"; readonly batch: number }
  /** No further batch comes: release everything, and exit. */
  | { readonly _tag: "Stop" }

export type FromThread =
  | {
      readonly _tag: "Ready"
      readonly decoupled: boolean
      readonly maxBatchSize: number
      readonly inputs: ReadonlyArray<SpecMessage>
      readonly outputs: ReadonlyArray<SpecMessage>
    }
  /** It exits by itself afterwards. */
  | { readonly _tag: "LoadFailed"; readonly message: string }
  /** One of the responses of a decoupled model. */
  | {
      readonly _tag: "Response"
      readonly batch: number
      readonly response: ResponseMessage
      readonly buffer: ArrayBuffer
    }
  | {
      readonly _tag: "Outcomes"
      readonly batch: number
      readonly outcomes: ReadonlyArray<OutcomeMessage>
      readonly buffer: ArrayBuffer
    }
  | { readonly _tag: "Log"; readonly level: LogLevelName; readonly message: string }
  /** Metrics that the handler declares, by numbers. */
  | { readonly _tag: "Metric"; readonly metric: number; readonly spec: FamilySpec }
  | { readonly _tag: "Measured"; readonly updates: ReadonlyArray<MetricUpdate> }

export interface MetricUpdate {
  readonly metric: number
  readonly labels: ReadonlyArray<string>
  readonly value: number
}

export type LogLevelName = "Fatal" | "Error" | "Warn" | "Info" | "Debug" | "Trace"

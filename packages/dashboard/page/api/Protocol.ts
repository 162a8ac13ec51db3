/** The JSON of the v2 protocol, as far as the page reads it. Names are those of the wire. */

export interface IndexEntry {
  readonly name: string
  readonly version?: string
  readonly state?: "UNKNOWN" | "READY" | "UNAVAILABLE" | "LOADING" | "UNLOADING"
  readonly reason?: string
}

export interface TensorMetadata {
  readonly name: string
  readonly datatype: string
  readonly shape: ReadonlyArray<number>
}

export type JsonSchema = Readonly<Record<string, unknown>>

/** The part of a declaration that goes beyond the metadata of a tensor. */
export interface DeclaredTensor {
  readonly name: string
  readonly dims?: ReadonlyArray<number | string>
  readonly form?: "tensor" | "scalar" | "utf8" | "json"
  readonly labels?: ReadonlyArray<string>
  readonly schema?: JsonSchema
  readonly default?: unknown
}

export interface DeclaredParameter {
  readonly name: string
  readonly schema: JsonSchema
  readonly optional?: boolean
  readonly default?: string | number | boolean
}

export interface DeclaredError {
  readonly tag: string
  readonly http_status: number
  readonly grpc_code: string
}

export interface ModelMetadata {
  readonly name: string
  readonly versions: ReadonlyArray<string>
  readonly platform: string
  readonly inputs: ReadonlyArray<TensorMetadata>
  readonly outputs: ReadonlyArray<TensorMetadata>
  readonly contract?: {
    readonly inputs?: ReadonlyArray<DeclaredTensor>
    readonly outputs?: ReadonlyArray<DeclaredTensor>
    readonly parameters?: ReadonlyArray<DeclaredParameter>
    readonly response_parameters?: ReadonlyArray<DeclaredParameter>
    readonly errors?: ReadonlyArray<DeclaredError>
    /** Present if every request must belong to a sequence. */
    readonly sequence?: { readonly max_idle_microseconds?: number }
  }
}

export interface EnsembleStep {
  readonly model_name: string
  readonly model_version: number | string
  /** The model's tensors to the ensemble's. */
  readonly input_map: Readonly<Record<string, string>>
  readonly output_map: Readonly<Record<string, string>>
}

export interface ModelConfig {
  readonly name: string
  readonly platform: string
  readonly backend: string
  readonly max_batch_size: number
  readonly input: ReadonlyArray<{ readonly name: string; readonly optional?: boolean }>
  readonly instance_group: ReadonlyArray<{
    readonly name: string
    readonly count: number
    readonly kind: string
    readonly gpus: ReadonlyArray<number>
  }>
  readonly dynamic_batching?: {
    readonly preferred_batch_size: ReadonlyArray<number>
    readonly max_queue_delay_microseconds: number | string
    readonly default_queue_policy?: { readonly max_queue_size: number }
  }
  readonly sequence_batching?: {
    readonly control_input?: ReadonlyArray<{
      readonly control: ReadonlyArray<{ readonly kind?: string; readonly data_type?: string }>
    }>
  }
  readonly ensemble_scheduling?: { readonly step: ReadonlyArray<EnsembleStep> }
  readonly model_transaction_policy?: { readonly decoupled?: boolean }
  readonly response_cache?: { readonly enable?: boolean }
  readonly parameters?: Readonly<Record<string, { readonly string_value: string }>>
}

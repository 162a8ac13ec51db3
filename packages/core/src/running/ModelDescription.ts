/**
 * The description of a running model, local or remote. Only its statistics change while it runs, and the labels and the
 * required sequence that an ensemble has from its steps.
 */
import type { FlatBatch } from "../batch/FlatBatch.ts"
import type { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { Batching } from "../model/Batching.ts"
import type { DeclaredErrors } from "../model/DeclaredErrors.ts"
import type { Fields } from "../model/Field.ts"
import type { ParameterFields } from "../model/ParameterFields.ts"
import { required, type RequiredSequence, type Sequencing } from "../model/Sequencing.ts"
import type { WarmUps } from "../model/WarmUpOptions.ts"
import type { ModelInterface } from "../wire/ModelInterface.ts"
import type { ModelFile } from "./ModelFile.ts"

export interface ModelDescription extends ModelInterface {
  /** Platform of the model, for metadata: `onnxruntime_onnx`, `nereid`. */
  readonly platform: string
  /** As declared. */
  readonly batching: Batching
  /** Undefined for a model without sequences. */
  readonly sequencing: Sequencing | undefined
  /** Undefined unless every request belongs to a sequence. An ensemble has it of its steps, without `sequencing`. */
  readonly requiredSequence: RequiredSequence | undefined
  readonly statistics: ModelStatistics
  /** Batching of requests with different shapes in flat batches; undefined if disabled. */
  readonly flat: FlatBatch | undefined
  /** Whether its instances execute in other threads of this process. */
  readonly threaded: boolean
  /** Whether the model answers a repeated request from its cache, without an execution. */
  readonly responseCache: boolean
  /** The file that the model was loaded from; undefined for a model in code or on another server. */
  readonly modelFile: ModelFile | undefined
  /** Warm-up requests that its instances executed before the model took requests. */
  readonly warmUp: WarmUps<Fields> | undefined
  /** Declared parameters of requests; empty without a declaration. */
  readonly parameters: ParameterFields
  /** Declared parameters of responses; undefined without a declaration. */
  readonly responseParameters: ParameterFields | undefined
  /** Declared errors; undefined without a declaration. */
  readonly errors: DeclaredErrors | undefined
}

/** The part that comes from the model's declaration. */
interface ModelDeclaration extends Pick<
  ModelDescription,
  "name" | "version" | "signature" | "maxBatchSize" | "batching"
> {
  readonly sequencing?: Sequencing | undefined
  readonly parameters?: ParameterFields | undefined
  readonly responseParameters?: ParameterFields | undefined
  readonly errors?: DeclaredErrors | undefined
}

/** A description, with defaults for a model without a file, a cache and flat batches. */
export const make = (
  {
    name,
    version,
    signature,
    maxBatchSize,
    batching,
    sequencing,
    parameters = {},
    responseParameters,
    errors,
  }: ModelDeclaration,
  overrides: Pick<ModelDescription, "platform" | "statistics"> & Partial<ModelDescription>,
): ModelDescription => ({
  name,
  version,
  signature,
  maxBatchSize,
  batching,
  sequencing,
  requiredSequence: required(sequencing),
  flat: undefined,
  threaded: false,
  responseCache: false,
  modelFile: undefined,
  warmUp: undefined,
  parameters,
  responseParameters,
  errors,
  ...overrides,
})

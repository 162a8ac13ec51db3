/**
 * The vocabulary for users: `Onnx.layer` provides a model from an .onnx file. The parts live in Instances.ts.
 */
import type { GivenOptions } from "@nereid/core/internal/model/GivenOptions"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { ModelClass } from "@nereid/core/internal/call/ModelClass"
import type { Fields } from "@nereid/core/internal/model/Field"
import * as FlatBatch from "@nereid/core/internal/batch/FlatBatch"
import * as FlatInstance from "@nereid/core/internal/instance/FlatInstance"
import type { PlannedInstance } from "@nereid/core/internal/instance/InstancePlan"
import type { Declared } from "@nereid/core/internal/model/Declared"
import * as Provide from "@nereid/core/internal/provide/Provide"
import { Effect, type Layer, type Scope } from "effect"
import * as OnnxModelFile from "./OnnxModelFile.ts"
import { type OnnxOptions, source } from "./Instances.ts"
import type { OnnxLoadError } from "./OnnxLoadError.ts"

export type { OnnxOptions as Options } from "./Instances.ts"
export { OnnxLoadError } from "./OnnxLoadError.ts"
export type { Provider, ProviderName } from "./Provider.ts"
export type { SessionGroup } from "./SessionPlan.ts"
export type { RestartOptions } from "@nereid/core/internal/instance/Supervisor"
export type { GraphOptimization } from "./SessionProtocol.ts"

/** Of the sessions, and of the model around them. */
export interface LayerOptions<I extends Fields = Fields> extends OnnxOptions, Provide.ServingOptions<I> {
  /**
   * How requests of different shapes share a batch, for a file that takes their elements one behind another (Triton's ragged
   * batching). Default: only requests of equal shapes share one, or as the declaration's `batching.ragged` says.
   *
   * ```ts
   * flat: {
   *   inputs: ["X"],
   *   batchInputs: { ENDS: { kind: "BATCH_ACCUMULATED_ELEMENT_COUNT", datatype: "INT32", source: "X" } },
   *   batchOutputs: { Y: "X" },
   * }
   * ```
   */
  readonly flat?: FlatBatch.FlatOptions<keyof I & string>
}

/**
 * Provides a model from a file. The file's signature is compared with the declaration, and every session is loaded, before
 * the layer is there. When it is released, what runs is finished first.
 * @throws TypeError where `flat` names what is not there
 */
export const layer = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  P extends Declared,
  const Given extends LayerOptions<I>,
>(
  model: ModelClass<Self, N, I, O, P>,
  options: GivenOptions<Given, LayerOptions<I>>,
): Layer.Layer<Self, OnnxLoadError | Provide.Failure<Given>> => {
  const { definition } = model
  const flat = options.flat && FlatBatch.resolve(definition, options.flat)
  return Provide.fromInstances<Self, N, I, O, P, OnnxLoadError, Scope.Scope, Given>(
    model,
    {
      platform: "onnxruntime_onnx",
      // Copied into shared memory, or into a message.
      keepsInputs: false,
      readsRequest: false,
      flat,
      modelFile: OnnxModelFile.make(options),
      instances: flat ? flatSource(definition, flat, options) : source(definition, options),
    },
    options,
  )
}

const flatSource = (definition: Definition<Fields, Fields>, flat: FlatBatch.FlatBatch, options: OnnxOptions) =>
  Effect.map(source(FlatBatch.flatDefinition(flat, definition), options), ({ build, ...more }) => ({
    ...more,
    build: (planned: PlannedInstance) =>
      Effect.map(build(planned), (instance) => FlatInstance.make(definition, flat, instance)),
  }))

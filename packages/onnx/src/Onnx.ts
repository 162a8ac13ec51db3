/** `Onnx.layer`: provides a model from an .onnx file. The implementation is in Instances.ts. */
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
import * as GraphStates from "./GraphStates.ts"
import * as OnnxModelFile from "./OnnxModelFile.ts"
import { type OnnxOptions, source } from "./Instances.ts"
import type { OnnxLoadError } from "./OnnxLoadError.ts"

export type { OnnxOptions as Options } from "./Instances.ts"
export { OnnxLoadError } from "./OnnxLoadError.ts"
export type { Provider, ProviderName } from "./Provider.ts"
import type { DeclaredStates, StateOptions } from "./GraphStates.ts"
export type { GraphControl, StateOptions } from "./GraphStates.ts"
export type { SessionGroup } from "./SessionPlan.ts"
export type { RestartOptions } from "@nereid/core/internal/instance/Supervisor"
export type { GraphOptimization } from "./SessionProtocol.ts"

/** Options of the sessions, and of the model that they run. */
export interface LayerOptions<I extends Fields = Fields> extends OnnxOptions, Provide.ServingOptions<I> {
  /**
   * Lets requests of different shapes share a batch, for a file that takes their elements concatenated (Triton's ragged
   * batching). Default: only requests of equal shapes share a batch, or as the declaration's `batching.ragged` says.
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
 * Provides a model from an .onnx file. While the layer is built, it compares the file's signature with the declaration
 * and loads every session. The layer fails with an OnnxLoadError. Releasing the layer waits for running batches.
 * @throws TypeError if `flat` names an unknown tensor, or if `state` does not name every declared state
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
  options: GivenOptions<Given, LayerOptions<I> & StateOptions<P>> & StateOptions<P> & DeclaredStates<P, Given>,
): Layer.Layer<Self, OnnxLoadError | Provide.Failure<Given>> => {
  const { definition } = model
  const flat = options.flat && FlatBatch.resolve(definition, options.flat)
  const sequencing = GraphStates.resolve(definition, options)
  if (flat !== undefined && sequencing !== undefined) {
    throw new TypeError(`Model "${definition.name}": a model with sequences has no flat batches.`)
  }
  return Provide.fromInstances<Self, N, I, O, P, OnnxLoadError, Scope.Scope, Given>(
    model,
    {
      platform: "onnxruntime_onnx",
      threaded: true,
      // Inputs are copied into shared memory, or into a message.
      keepsInputs: false,
      readsRequest: false,
      flat,
      modelFile: OnnxModelFile.make(options),
      sequencing,
      instances: flat
        ? flatSource(definition, flat, options)
        : source(GraphStates.graphDefinition(definition, sequencing), options),
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

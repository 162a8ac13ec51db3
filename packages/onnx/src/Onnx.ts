/**
 * The vocabulary for users: `Onnx.layer` provides a model from an .onnx file. The parts live in Instances.ts.
 */
import type { ModelClass } from "@nereid/core/Definition"
import type { Fields } from "@nereid/core/Field"
import type { Declared } from "@nereid/core/ParameterFields"
import * as Provide from "@nereid/core/Provide"
import type { Layer, Scope } from "effect"
import * as SessionPlan from "./SessionPlan.ts"
import { instances, type Options } from "./Instances.ts"
import type { OnnxLoadError } from "./OnnxLoadError.ts"

export type { Options } from "./Instances.ts"
export { OnnxLoadError } from "./OnnxLoadError.ts"
export type { Provider, ProviderName } from "./Provider.ts"
export type { SessionGroup } from "./SessionPlan.ts"
export type { RestartOptions } from "@nereid/core/Supervisor"
export type { GraphOptimization } from "./WorkerProtocol.ts"

/** Of the sessions, and of the model around them. */
export interface LayerOptions<I extends Fields = Fields> extends Options, Provide.ServingOptions<I> {}

/**
 * Provides a model from a file. The file's signature is compared with the declaration, and every session is loaded, before
 * the layer is there. When it is released, what runs is finished first.
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
  options: Provide.Given<Given, LayerOptions<I>>,
): Layer.Layer<Self, OnnxLoadError | Provide.Failure<Given>> =>
  Provide.fromInstances<Self, N, I, O, P, OnnxLoadError, Scope.Scope, Given>(
    model,
    {
      platform: "onnxruntime_onnx",
      // Copied into shared memory, or into a message.
      keepsInputs: false,
      readsRequest: false,
      groups: SessionPlan.make(model.definition.name, options.instances, options.providers).groups,
      instances: instances(model.definition, options),
    },
    options,
  )

/**
 * The vocabulary for users: `Onnx.layer` provides a model from an .onnx file. The parts live in Instances.ts.
 */
import type { ModelClass } from "@nereid/core/Definition"
import type { Fields } from "@nereid/core/Field"
import { fromInstances } from "@nereid/core/Provide"
import type { Layer } from "effect"
import { instances, type Options } from "./Instances.ts"
import type { OnnxLoadError } from "./OnnxLoadError.ts"

export type { Options } from "./Instances.ts"
export { OnnxLoadError } from "./OnnxLoadError.ts"
export type { Provider, ProviderName } from "./Provider.ts"
export type { RestartOptions } from "./Supervisor.ts"
export type { GraphOptimization } from "./WorkerProtocol.ts"

/**
 * Provides a model from a file. The file's signature is compared with the declaration, and every session is loaded, before
 * the layer is there. When it is released, what runs is finished first.
 */
export const layer = <Self, N extends string, I extends Fields, O extends Fields>(
  model: ModelClass<Self, N, I, O>,
  options: Options,
): Layer.Layer<Self, OnnxLoadError> =>
  fromInstances(model, {
    platform: "onnxruntime_onnx",
    // Copied into shared memory, or into a message.
    keepsInputs: false,
    instances: instances(model.definition, options),
  })

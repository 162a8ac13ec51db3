/** A version of a model whose file is an ONNX graph: checked, and made the layer of its sessions. */
import { Effect, type Layer, type Scope } from "effect"
import * as BatchingMessage from "@nereid/core/BatchingMessage"
import * as FlatBatch from "@nereid/core/FlatBatch"
import * as FlatInstance from "@nereid/core/FlatInstance"
import type { Instance } from "@nereid/core/Instance"
import * as Provide from "@nereid/core/Provide"
import * as Instances from "@nereid/onnx/Instances"
import { type ModelConfig, ModelInstanceGroup_Kind as Kind } from "@nereid/protocol/model_config"
import * as Declaration from "./Declaration.ts"
import * as FileCheck from "./FileCheck.ts"
import { LoadFailure, text } from "./LoadFailure.ts"
import * as ModelPlan from "./ModelPlan.ts"
import * as OnnxParameters from "./OnnxParameters.ts"
import * as RaggedConfig from "./RaggedConfig.ts"
import * as ReshapedInstance from "./ReshapedInstance.ts"

export const layer = Effect.fnUntraced(function* (
  { config }: ModelPlan.ModelPlan,
  { file }: ModelPlan.PlannedVersion,
  declared: Declaration.RepositoryModelClass,
  serving: Provide.ServingOptions,
): Effect.fn.Return<Layer.Layer<unknown, { readonly message: string }>, LoadFailure> {
  const ragged = yield* Effect.mapError(
    Effect.fromResult(BatchingMessage.flat(config)),
    (message) => new LoadFailure({ message }),
  )
  const asInFile = ragged === undefined ? config : RaggedConfig.inFile(config, ragged)
  const problem = FileCheck.problem(asInFile, yield* ModelPlan.signature(file))
  if (problem !== undefined) return yield* new LoadFailure({ message: problem })
  const flat =
    ragged &&
    (yield* Effect.try({
      try: () => FlatBatch.resolve(declared.definition, ragged),
      catch: (error) => new LoadFailure({ message: text(error) }),
    }))
  return Provide.fromInstances(
    declared,
    {
      platform: config.platform,
      // Copied into shared memory, or into a message.
      keepsInputs: false,
      readsRequest: false,
      batches: config.schedulingChoice.case === "dynamicBatching",
      flat,
      instances: instances(config, declared, flat, file),
      groups: config.instanceGroup.map(({ name, count, kind, gpus }) => ({
        name,
        count,
        kind: kind === Kind.GPU ? "GPU" : "CPU",
        gpus,
      })),
    },
    serving,
  )
})

const instances = Effect.fnUntraced(function* (
  config: ModelConfig,
  { definition }: Declaration.RepositoryModelClass,
  flat: FlatBatch.FlatBatch | undefined,
  file: string,
): Effect.fn.Return<ReadonlyArray<Instance>, LoadFailure, Scope.Scope> {
  const options = yield* Effect.mapError(
    Effect.fromResult(OnnxParameters.options(config, file)),
    (message) => new LoadFailure({ message }),
  )
  const inner = Declaration.inner(config, definition)
  const shaped = inner ?? definition
  const sessions = yield* Instances.sessions(flat ? FlatBatch.inner(flat, shaped) : shaped, options).pipe(
    Effect.mapError(({ message }) => new LoadFailure({ message })),
  )
  const loaded = flat ? sessions.map((session) => FlatInstance.make(shaped, flat, session)) : sessions
  if (inner === undefined) return loaded
  const { signature, maxBatchSize } = definition
  return loaded.map((instance) => ReshapedInstance.make(instance, signature, inner.signature, maxBatchSize > 0))
})

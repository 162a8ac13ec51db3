/** One version of a model, loaded: from its plan to something that takes requests, for as long as the scope is open. */
import { Context, Effect, Layer, type Scope } from "effect"
import * as BatchingMessage from "@nereid/core/BatchingMessage"
import * as FlatBatch from "@nereid/core/FlatBatch"
import * as FlatInstance from "@nereid/core/FlatInstance"
import type { Instance } from "@nereid/core/Instance"
import * as Provide from "@nereid/core/Provide"
import type { RunningModel } from "@nereid/core/RunningModel"
import * as Instances from "@nereid/onnx/Instances"
import { ModelInstanceGroup_Kind as Kind } from "@nereid/protocol/model_config"
import * as Declaration from "./Declaration.ts"
import * as FileCheck from "./FileCheck.ts"
import { LoadFailure, text } from "./LoadFailure.ts"
import * as ModelPlan from "./ModelPlan.ts"
import * as OnnxParameters from "./OnnxParameters.ts"
import * as RaggedConfig from "./RaggedConfig.ts"
import * as ReshapedInstance from "./ReshapedInstance.ts"

export const load = Effect.fnUntraced(function* (
  plan: ModelPlan.ModelPlan,
  { version, file }: ModelPlan.PlannedVersion,
): Effect.fn.Return<RunningModel, LoadFailure, Scope.Scope> {
  const { config } = plan
  const ragged = yield* Effect.mapError(
    Effect.fromResult(BatchingMessage.flat(config)),
    (message) => new LoadFailure({ message }),
  )
  const asInFile = ragged === undefined ? config : RaggedConfig.inFile(config, ragged)
  const problem = FileCheck.problem(asInFile, yield* ModelPlan.signature(file))
  if (problem !== undefined) return yield* new LoadFailure({ message: problem })
  const declared = Declaration.make(plan, version)
  const flat =
    ragged &&
    (yield* Effect.try({
      try: () => FlatBatch.resolve(declared.definition, ragged),
      catch: (error) => new LoadFailure({ message: text(error) }),
    }))
  const { warmUp } = plan
  const serving: Provide.ServingOptions = {
    ...(warmUp.length > 0 ? { warmUp: { inputs: warmUp } } : {}),
    responseCache: config.responseCache?.enable === true,
  }
  const layer = Provide.fromInstances(
    declared,
    {
      platform: config.platform,
      // Copied into shared memory, or into a message.
      keepsInputs: false,
      readsRequest: false,
      batches: config.schedulingChoice.case === "dynamicBatching",
      flat,
      instances: instances(plan, declared, flat, file),
      groups: config.instanceGroup.map(({ name, count, kind, gpus }) => ({
        name,
        count,
        kind: kind === Kind.GPU ? "GPU" : "CPU",
        gpus,
      })),
    },
    serving,
  )
  const built = Effect.mapError(Layer.build(layer), ({ message }) => new LoadFailure({ message }))
  const { model } = Context.get(yield* built, declared)
  return { ...model, configuration: config }
})

const instances = Effect.fnUntraced(function* (
  { config }: ModelPlan.ModelPlan,
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

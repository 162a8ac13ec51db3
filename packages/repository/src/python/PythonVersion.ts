/**
 * A version of a model whose file is a `model.py` for Triton's Python backend: a process for each instance, or one for
 * all.
 */
import { Effect, type Layer, type Scope } from "effect"
import type { Instance } from "@nereid/core/internal/instance/Instance"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import * as Provide from "@nereid/core/internal/provide/Provide"
import * as SequenceInstance from "@nereid/core/internal/sequence/SequenceInstance"
import * as Reshape from "@nereid/core/internal/tensor/Reshape"
import { type ModelConfig, ModelInstanceGroup_Kind as Kind } from "@nereid/protocol/model_config"
import { CallingInstances } from "@nereid/python/internal/ports/CallingInstances"
import * as PythonInstances from "@nereid/python/internal/process/PythonInstances"
import * as Declaration from "../config/Declaration.ts"
import * as InstanceGroups from "../config/InstanceGroups.ts"
import { failure, type LoadFailure } from "../directory/LoadFailure.ts"
import * as ReshapedInstance from "../onnx/ReshapedInstance.ts"
import type { VersionPlan } from "../plan/VersionPlan.ts"
import * as CompletedConfig from "./CompletedConfig.ts"
import type { PythonServer } from "../plan/PythonServer.ts"
import * as PythonSource from "./PythonSource.ts"
import * as ServerPorts from "./ServerPorts.ts"

export interface PythonVersion {
  readonly layer: Layer.Layer<unknown, { readonly message: string }>
  /** Reports whether the processes run, and what `is_ready` of the model says. */
  readonly probe: Effect.Effect<boolean>
}

export const make = Effect.fn("PythonVersion.make")(function* (
  plan: VersionPlan,
  declared: Declaration.RepositoryModelClass,
  server: PythonServer,
  serving: Provide.ServingOptions,
): Effect.fn.Return<PythonVersion, LoadFailure> {
  const { config, path, version } = plan
  const source = yield* PythonSource.make(plan, path, config, server.options)
  const context = yield* Effect.context<never>()
  const { name, signature, maxBatchSize, sequencing } = declared.definition
  const reshaped = Declaration.reshapedSignature(config, signature)
  const inner = sequencing ? SequenceInstance.innerSignature(reshaped, sequencing) : reshaped
  const outer = sequencing ? SequenceInstance.innerSignature(signature, sequencing) : signature
  const decoupled = config.modelTransactionPolicy?.decoupled === true
  const instances = new CallingInstances(name)
  const instancePlan = InstancePlan.make(name, String(version), InstanceGroups.options(config))
  const processes = PythonInstances.make({
    ...source,
    version: String(version),
    config: CompletedConfig.text(config),
    kind: kindOf(config),
    signature: inner,
    decoupled,
    outputs: "configured",
    restart: {},
    inThreads: source.isThreaded ? instancePlan.instances : undefined,
    ports: (instance) => ServerPorts.make(server, instances, context, instance.name),
  })
  const reshapes = Reshape.make(outer, inner, maxBatchSize > 0)
  const build = (planned: InstancePlan.PlannedInstance): Effect.Effect<Instance, LoadFailure, Scope.Scope> =>
    processes.build(planned).pipe(
      Effect.tapError(({ reason }) => Effect.logError(`Failed to initialize Python stub: ${reason}`)),
      Effect.mapError(({ reason }) => failure(reason)),
      Effect.map((instance) => (reshaped === signature ? instance : ReshapedInstance.make(instance, reshapes))),
      Effect.flatMap((instance) => instances.add(instance)),
    )
  const layer = Provide.fromInstances(
    declared,
    {
      platform: "python",
      decoupled,
      // Inputs are written to a socket.
      keepsInputs: false,
      mapsShared: true,
      threaded: true,
      granularity: "requests",
      isStepwise: true,
      outlivesBatches: true,
      instances: Effect.succeed({
        plan: instancePlan,
        build,
        isConcurrent: true,
      }),
    },
    serving,
  )
  const probe = Effect.flatMap(processes.isReady, ({ isReady, reason }) => {
    const log = Effect.logDebug(`Model '${name}' version ${version} is not ready: ${reason}`)
    return Effect.as(isReady ? Effect.void : log, isReady)
  })
  return { layer, probe: Effect.provideContext(probe, context) }
})

/** The kind of an instance in the arguments of `initialize`. */
const kindOf =
  ({ instanceGroup }: ModelConfig): NonNullable<PythonInstances.PythonModelOptions["kind"]> =>
  ({ group, kind }) =>
    instanceGroup.filter(({ passive }) => !passive)[group]?.kind === Kind.MODEL ? "MODEL" : kind

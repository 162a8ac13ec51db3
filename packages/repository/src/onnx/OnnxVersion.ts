/** A version of a model whose file is an ONNX graph: checked, and made the layer of its sessions. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Layer, type Scope } from "effect"
import * as BatchingMessage from "@nereid/core/internal/configuration/BatchingMessage"
import * as FlatBatch from "@nereid/core/internal/batch/FlatBatch"
import * as FlatInstance from "@nereid/core/internal/instance/FlatInstance"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import type * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import * as Provide from "@nereid/core/internal/provide/Provide"
import * as Reshape from "@nereid/core/internal/tensor/Reshape"
import * as Instances from "@nereid/onnx/internal/Instances"
import type { ModelConfig } from "@nereid/protocol/model_config"
import * as Declaration from "../config/Declaration.ts"
import * as FileCheck from "./FileCheck.ts"
import * as InstanceGroups from "../config/InstanceGroups.ts"
import { failure, invalid, type LoadFailure, refuse } from "../directory/LoadFailure.ts"
import * as VersionPlan from "../plan/VersionPlan.ts"
import * as OnnxParameters from "./OnnxParameters.ts"
import * as SequenceInstance from "@nereid/core/internal/sequence/SequenceInstance"
import * as RaggedConfig from "./RaggedConfig.ts"
import * as ReshapedInstance from "./ReshapedInstance.ts"
import * as SequenceFile from "./SequenceFile.ts"

export const layer = Effect.fnUntraced(function* (
  { config, file, idleSeconds, sequencing }: VersionPlan.VersionPlan,
  declared: Declaration.RepositoryModelClass,
  serving: Provide.ServingOptions,
): Effect.fn.Return<Layer.Layer<unknown, { readonly message: string }>, LoadFailure> {
  const ragged = yield* Effect.mapError(Effect.fromResult(BatchingMessage.flat(config)), invalid)
  const asInFile = ragged === undefined ? config : RaggedConfig.inFile(config, ragged)
  const { signature: inFile, weightFiles } = yield* VersionPlan.source(file)
  const hidden = sequencing && SequenceFile.problem(config, sequencing, inFile)
  if (hidden !== undefined) return yield* hidden
  yield* refuse(FileCheck.problem(sequencing ? SequenceFile.inFile(asInFile, sequencing) : asInFile, inFile))
  const requiredInputs = inFile.defaultedInputs.filter(({ name }) => config.input.some((input) => input.name === name))
  const model = Declaration.withDefaults(
    declared,
    new Map(requiredInputs.flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]]))),
  )
  const flat =
    ragged &&
    (yield* Effect.try({
      try: () => FlatBatch.resolve(model.definition, ragged),
      catch: (error) => invalid(errorMessage(error)),
    }))
  return Provide.fromInstances(
    model,
    {
      platform: config.platform,
      threaded: true,
      // Copied into shared memory, or into a message.
      keepsInputs: false,
      readsRequest: false,
      flat,
      instances: source(config, model, flat, {
        file,
        idleSeconds,
        requiredInputs: requiredInputs.map(({ name }) => name),
        weightFiles,
      }),
    },
    serving,
  )
})

const source = Effect.fnUntraced(function* (
  config: ModelConfig,
  { definition }: Declaration.RepositoryModelClass,
  flat: FlatBatch.FlatBatch | undefined,
  {
    file,
    idleSeconds,
    ...fromFile
  }: Pick<Instances.InstanceSessionOptions, "requiredInputs" | "weightFiles"> & {
    readonly file: string
    readonly idleSeconds: number
  },
): Effect.fn.Return<InstanceSet.InstanceSource<LoadFailure, Scope.Scope>, LoadFailure> {
  const options = yield* Effect.mapError(Effect.fromResult(OnnxParameters.options(config, file, idleSeconds)), invalid)
  const { name, version, signature, maxBatchSize, sequencing } = definition
  const reshaped = Declaration.reshapedSignature(config, signature)
  const isReshaped = reshaped !== signature
  const inner = sequencing ? SequenceInstance.innerSignature(reshaped, sequencing) : reshaped
  const outer = sequencing ? SequenceInstance.innerSignature(signature, sequencing) : signature
  const reshapes = Reshape.make(outer, inner, maxBatchSize > 0)
  const shaped = { ...definition, signature: inner }
  const executed = flat ? FlatBatch.flatDefinition(flat, shaped) : shaped
  const build = Effect.fnUntraced(function* ({ details }: InstancePlan.PlannedInstance) {
    const session = yield* Effect.mapError(
      Instances.session(executed, { ...options, ...fromFile }, details.name, OnnxParameters.providers(config, details)),
      ({ message }) => failure(message),
    )
    const instance = flat ? FlatInstance.make(shaped, flat, session) : session
    return isReshaped ? ReshapedInstance.make(instance, reshapes) : instance
  })
  return { plan: InstancePlan.make(name, version, InstanceGroups.options(config)), build, isConcurrent: true }
})

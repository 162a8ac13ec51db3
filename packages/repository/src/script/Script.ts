/** Converts the script of a module to a model layer, on the thread that imports the module. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Layer, Result } from "effect"
import { createHash } from "node:crypto"
import { realpath } from "node:fs/promises"
import { pathToFileURL } from "node:url"
import { type HandledRequest, InstanceContext, Model } from "@nereid/core"
import type { Fields } from "@nereid/core/internal/model/Field"
import * as MessageJson from "@nereid/core/internal/codec/protobuf/MessageJson"
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { GroupOptions } from "@nereid/core/internal/instance/InstancePlan"
import type { ServingOptions } from "@nereid/core/internal/provide/Provide"
import { type AnyTensor, reshape, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import type { RepositoryModelClass } from "../config/Declaration.ts"
import * as ImportProblem from "./ImportProblem.ts"
import { LoadFailure } from "../directory/LoadFailure.ts"
import type { VersionFiles, VersionPlan } from "../plan/VersionPlan.ts"
import type { Answer, Arguments, ModelScript, Outputs, Request, StreamScript } from "./ModelScript.ts"
import type { ScriptProbe } from "./ScriptProbe.ts"

interface Options extends ServingOptions {
  /** Default: the only one of its thread. */
  readonly instances?: ReadonlyArray<GroupOptions>
}

/** Dependencies of a script. */
export interface ScriptEnvironment {
  readonly plan: Omit<VersionPlan, "warmUp">
  readonly declared: RepositoryModelClass
  /** The models that the script may call. */
  readonly models: NamedCalls
  /** Readiness probe of the instances; absent in a worker thread. */
  readonly probe?: ScriptProbe
}

/** The layer of the script that a module exports, with these options. */
export const layer = Effect.fnUntraced(function* (
  module: Module,
  environment: ScriptEnvironment,
  options: Options,
): Effect.fn.Return<Layer.Layer<unknown, { readonly message: string }>, LoadFailure> {
  const { plan, declared } = environment
  const { config } = plan
  if (config.modelTransactionPolicy?.decoupled === true) {
    const script = yield* scriptOf<StreamScript>(module, plan)
    const handler = Effect.map(
      instanceState(script, environment),
      (state) => (inputs: Record<string, unknown>, request: HandledRequest) =>
        responses(script.execute(Object.assign(request, { inputs: withRow(inputs) }), state)),
    )
    const { responseCache: _, ...streamOptions } = options
    return Model.stream(declared, handler, streamOptions)
  }
  const script = yield* scriptOf<ModelScript>(module, plan)
  const handler = Effect.map(
    instanceState(script, environment),
    (state) => async (requests: ReadonlyArray<Model.ModelRequest<Fields>>) =>
      // Each tensor has one datatype, whichever that is.
      (await script.execute(requests as ReadonlyArray<Request>, state)).map(result),
  )
  return Model.requests(declared, handler, options)
})

/** The state of an instance, until it ends. */
const instanceState = Effect.fnUntraced(function* (
  { initialize, isReady, finalize }: Pick<ModelScript, "initialize" | "isReady" | "finalize">,
  { plan: { config, path, version, file }, models, probe }: ScriptEnvironment,
) {
  const failing = (step: string) => (error: unknown) =>
    new LoadFailure({ message: `${step} of ${file} has failed: ${errorMessage(error)}` })
  const { name, kind, gpu } = yield* InstanceContext
  const args: Arguments = {
    modelName: config.name,
    modelVersion: String(version),
    modelRepository: path,
    modelConfig: config,
    modelInstanceName: name,
    modelInstanceKind: kind,
    modelInstanceDeviceId: gpu,
    models,
    args: {
      model_config: JSON.stringify(MessageJson.print(ModelConfigSchema, config)),
      model_instance_kind: kind,
      model_instance_device_id: String(gpu ?? 0),
      model_instance_name: name,
      model_repository: path,
      model_version: String(version),
      model_name: config.name,
    },
  }
  const state = yield* Effect.acquireRelease(
    Effect.tryPromise({ try: async () => initialize?.(args), catch: failing("initialize") }),
    (state) =>
      Effect.tryPromise({ try: async () => finalize?.(state), catch: failing("finalize") }).pipe(
        Effect.catch(({ message }) => Effect.logError(message)),
      ),
  )
  if (isReady !== undefined) {
    if (probe === undefined) yield* Effect.logWarning(`isReady of ${file} is asked by nobody, in a thread of its own`)
    else yield* probe.add(name, () => isReady(state))
  }
  return state
})

/** Exports of a module, by name. */
export type Module = Readonly<Record<string, unknown>>

export const load = Effect.fn("Script.load")(function* ({
  file,
  stamp,
}: VersionFiles): Effect.fn.Return<Module, LoadFailure> {
  return yield* Effect.tryPromise({
    try: async (): Promise<Module> => {
      // Node resolves links itself, once for each path: one that leads elsewhere now would lead to the old file.
      const url = pathToFileURL(await realpath(file))
      // Another address for other contents: a module is never loaded twice from the same one.
      url.searchParams.set("version", createHash("sha256").update(stamp).digest("hex").slice(0, 16))
      return import(url.href)
    },
    catch: (error) => new LoadFailure({ message: `cannot load ${file}: ${ImportProblem.text(error)}` }),
  })
})

/** Both kinds of script look alike, so the configuration decides. */
const scriptOf = <S extends ModelScript | StreamScript>(
  { default: script }: Module,
  { file }: VersionFiles,
): Effect.Effect<S, LoadFailure> => {
  if (isScript<S>(script)) return Effect.succeed(script)
  const message = `${file} must export a script by default, as ModelScript makes it, or the model's class and its layer`
  return Effect.fail(new LoadFailure({ message }))
}

const isScript = <S extends ModelScript | StreamScript>(value: unknown): value is S =>
  typeof value === "object" && value !== null && "execute" in value && typeof value.execute === "function"

/** Tensors with the one row that a request to a decoupled model has, along axis 0. */
const withRow = (inputs: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(inputs).flatMap(([name, tensor]) =>
      tensor instanceof TypedTensor ? [[name, reshape(tensor, [1, ...tensor.shape]) as AnyTensor]] : [],
    ),
  )

const responses = async function* (outputs: Iterable<Outputs> | AsyncIterable<Outputs>) {
  if (!isIterable(outputs)) throw new Error("execute must be a generator, or return what can be iterated")
  for await (const one of outputs) yield withoutRow(one)
}

const isIterable = (value: unknown): boolean =>
  typeof value === "object" && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)

/** Removes the row axis. Values that are not tensors are reported later, by name. */
const withoutRow = (outputs: Outputs) =>
  Object.fromEntries(
    Object.entries(outputs).map(([name, tensor]) => {
      if (!(tensor instanceof TypedTensor)) return [name, tensor]
      if (tensor.shape[0] === 1) return [name, reshape(tensor, tensor.shape.slice(1))]
      throw new Error(`output '${name}' of a response has shape [${tensor.shape}], and not one row along axis 0`)
    }),
  )

/** The outcome of one request. The outputs are checked against the signature later. */
const result = (output: Answer): Result.Result<Model.Batched<Fields>, Error> =>
  output instanceof Error ? Result.fail(output) : Result.succeed(output as Model.Batched<Fields>)

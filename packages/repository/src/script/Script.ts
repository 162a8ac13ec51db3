/** Converts the script of a module to a model layer, on the thread that imports the module. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Layer, type Scope } from "effect"
import { createHash } from "node:crypto"
import { pathToFileURL } from "node:url"
import { InstanceContext } from "@nereid/core"
import * as ScriptHandler from "@nereid/core/internal/handler/ScriptHandler"
import * as Files from "@nereid/onnx/internal/file/Files"
import * as MessageJson from "@nereid/core/internal/codec/protobuf/MessageJson"
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { GroupOptions } from "@nereid/core/internal/instance/InstancePlan"
import type { ServingOptions } from "@nereid/core/internal/provide/Provide"
import type { OnSequenceEnd } from "@nereid/core/internal/sequence/SequenceEndings"
import * as SequenceInstance from "@nereid/core/internal/sequence/SequenceInstance"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import * as Declaration from "../config/Declaration.ts"
import * as ImportProblem from "./ImportProblem.ts"
import { LoadFailure } from "../directory/LoadFailure.ts"
import type { VersionFiles, VersionPlan } from "../plan/VersionPlan.ts"
import type { Arguments, ModelScript, StreamScript } from "./ModelScript.ts"
import * as ScriptKind from "./ScriptKind.ts"
import * as ScriptLogger from "./ScriptLogger.ts"
import * as ScriptMetrics from "./ScriptMetrics.ts"
import type { ScriptProbe } from "./ScriptProbe.ts"

interface Options extends ServingOptions {
  /** Default: the only one of its thread. */
  readonly instances?: ReadonlyArray<GroupOptions>
}

/** Dependencies of a script. */
export interface ScriptEnvironment {
  readonly plan: Omit<VersionPlan, "warmUp" | "idleSeconds" | "sequencing">
  readonly declared: Declaration.RepositoryModelClass
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
  const { signature, sequencing } = declared.definition
  const reshaped = Declaration.reshapedSignature(config, signature)
  const inner = sequencing ? SequenceInstance.innerSignature(reshaped, sequencing) : reshaped
  if (config.modelTransactionPolicy?.decoupled === true) {
    const script = yield* scriptOf<StreamScript>(module, plan)
    const handler = Effect.map(instanceOf(script, environment), ({ state, onSequenceEnd }) => ({
      execute: (request: ScriptHandler.ScriptRequest) => responses(script.execute(request, state)),
      onSequenceEnd,
    }))
    const { responseCache: _, ...streamOptions } = options
    return ScriptHandler.streams(declared, inner, handler, streamOptions)
  }
  const script = yield* scriptOf<ModelScript>(module, plan)
  const handler = Effect.map(instanceOf(script, environment), ({ state, onSequenceEnd }) => ({
    execute: async (requests: ReadonlyArray<ScriptHandler.ScriptRequest>) => {
      const answers: unknown = await script.execute(requests, state)
      if (!Array.isArray(answers)) throw new Error("execute must return an array with one response per request")
      return answers
    },
    onSequenceEnd,
  }))
  return ScriptHandler.batches(declared, inner, handler, options)
})

/** The state of an instance, until it ends, and what learns of the ends of its sequences. */
const instanceOf = Effect.fnUntraced(function* (
  script: Pick<ModelScript, "initialize" | "isReady" | "sequenceEnded" | "finalize">,
  environment: ScriptEnvironment,
) {
  const state = yield* instanceState(script, environment)
  const { plan, probe } = environment
  const { sequenceEnded } = script
  if (sequenceEnded === undefined) return { state, onSequenceEnd: undefined }
  if (probe === undefined) {
    yield* Effect.logWarning(`sequenceEnded of ${plan.file} has no effect: it is not called in a worker thread`)
    return { state, onSequenceEnd: undefined }
  }
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const onSequenceEnd: OnSequenceEnd = (id, reason) => {
    const call = async () => sequenceEnded(id, reason, state)
    call().catch((error: unknown) => {
      fork(Effect.logError(`sequenceEnded of ${plan.file} has failed: ${errorMessage(error)}`))
    })
  }
  return { state, onSequenceEnd }
})

/** The state of an instance, until it ends. */
const instanceState = Effect.fnUntraced(function* (
  { initialize, isReady, finalize }: Pick<ModelScript, "initialize" | "isReady" | "finalize">,
  { plan: { config, path, version, file }, models, probe }: ScriptEnvironment,
) {
  const failing = (step: string) => (error: unknown) =>
    new LoadFailure({ message: `${step} of ${file} has failed: ${errorMessage(error)}` })
  const { name, kind, gpu } = yield* InstanceContext
  const context = yield* Effect.context<InstanceContext | Scope.Scope>()
  const args: Arguments = {
    modelName: config.name,
    modelVersion: String(version),
    modelRepository: path,
    modelConfig: config,
    modelInstanceName: name,
    modelInstanceKind: kind,
    modelInstanceDeviceId: gpu,
    models,
    logger: ScriptLogger.make(context),
    metrics: ScriptMetrics.make(context),
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
    if (probe === undefined)
      yield* Effect.logWarning(
        `isReady of ${file} has no effect: a script in a worker thread is ready while its thread runs`,
      )
    else yield* probe.add(name, () => isReady(state))
  }
  return state
})

/** Exports of a module, by name. */
export type Module = Readonly<Record<string, unknown>>

/** Maximum bytes of a module. */
const maxModuleBytes = 64 * 1024 * 1024

/**
 * Checks that Node may import a file, which it reads whatever it is, and returns its path without links. Node resolves
 * links itself, once for each path: one that leads elsewhere now would lead to the old file.
 */
export const locate = (file: string): Effect.Effect<string, LoadFailure> =>
  Files.check(file, maxModuleBytes).pipe(
    Effect.andThen(Files.realPath(file)),
    Effect.mapError(({ message }) => new LoadFailure({ message: `cannot load ${file}: ${message}` })),
  )

/** `realPath` is from `locate`. */
export const load = Effect.fn("Script.load")(function* (
  { file, stamp }: VersionFiles,
  realPath: string,
): Effect.fn.Return<Module, LoadFailure> {
  return yield* Effect.tryPromise({
    try: async (): Promise<Module> => {
      const url = pathToFileURL(realPath)
      // Another address for other contents: a module is never loaded twice from the same one.
      url.searchParams.set("version", createHash("sha256").update(stamp).digest("hex").slice(0, 16))
      return import(url.href)
    },
    catch: (error) => new LoadFailure({ message: `cannot load ${file}: ${ImportProblem.text(error)}` }),
  })
})

/** The configuration decides which kind of script it is; one that is known to be of the other kind is refused. */
const scriptOf = <S extends ModelScript | StreamScript>(
  { default: script }: Module,
  { file, config }: Omit<VersionPlan, "warmUp" | "idleSeconds" | "sequencing">,
): Effect.Effect<S, LoadFailure> => {
  if (isScript<S>(script)) {
    const isDecoupled = config.modelTransactionPolicy?.decoupled === true
    const problem = ScriptKind.problem(ScriptKind.of(script), isDecoupled)
    return problem === undefined
      ? Effect.succeed(script)
      : Effect.fail(new LoadFailure({ message: `${file} ${problem}` }))
  }
  const message = `${file} must export a script from ModelScript as its default, or the class of the model and its layer`
  return Effect.fail(new LoadFailure({ message }))
}

const isScript = <S extends ModelScript | StreamScript>(value: unknown): value is S =>
  typeof value === "object" && value !== null && "execute" in value && typeof value.execute === "function"

const responses = async function* (outputs: ReturnType<StreamScript["execute"]>) {
  if (!isIterable(outputs)) throw new Error("execute must be a generator or return an iterable")
  yield* outputs
}

const isIterable = (value: unknown): boolean =>
  typeof value === "object" && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)

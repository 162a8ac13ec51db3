/**
 * Creates instances from a file and options: reads the file's signature, compares it with the declaration, and starts a
 * supervised worker for each instance. Supervisor.ts restarts workers; WorkerInstance.ts communicates with one.
 */
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { Instance } from "@nereid/core/internal/instance/Instance"
import type * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import * as Supervisor from "@nereid/core/internal/instance/Supervisor"
import { type Duration, Effect, type Scope } from "effect"
import { fileURLToPath } from "node:url"
import * as ModelSource from "./ModelSource.ts"
import * as OnnxLoadError from "./OnnxLoadError.ts"
import * as SessionPlan from "./SessionPlan.ts"
import { mismatches } from "./SignatureCheck.ts"
import * as Slots from "./Slots.ts"
import * as WorkerInstance from "./WorkerInstance.ts"
import type { GraphOptimization } from "./SessionProtocol.ts"

/** The file, and options of its sessions. */
export interface OnnxOptions {
  /** Path or file URL; a relative path is relative to the working directory. */
  readonly file: string | URL
  /**
   * Number of sessions, each in a separate worker thread, or a list of groups with their own execution providers, such
   * as one per device. More sessions increase throughput up to the number of cores. Default 1.
   */
  readonly instances?: SessionPlan.SessionsOption
  /** Threads within an operator. More threads reduce latency and throughput. Default 1. */
  readonly intraOpThreads?: number
  /** Operators that run concurrently. Above 1, the graph runs in parallel mode. Default 1. */
  readonly interOpThreads?: number
  /** Graph optimization level of ONNX Runtime. Default `all`. */
  readonly graphOptimization?: GraphOptimization
  /** Keeps the CPU provider's memory between runs, which is faster but never frees it. Default true. */
  readonly memoryArena?: boolean
  /**
   * Execution providers in order of preference. A missing provider is skipped with a warning; the load fails if it is
   * the last one. Operators that a provider does not support run on the CPU, as always in ONNX Runtime. Default
   * `["cpu"]`.
   */
  readonly providers?: SessionPlan.Providers
  /** Limits on restarting a worker thread that has died. */
  readonly restart?: Supervisor.RestartOptions
  /**
   * Time without batches after which an instance ends its thread and frees its memory, at the latest after twice this
   * time. The next batch waits until the thread has started and loaded the file again. Default: threads never end.
   */
  readonly idleTimeout?: Duration.Input | undefined
}

/** Options of one session, whose instance and providers are already decided. */
export interface InstanceSessionOptions extends Omit<OnnxOptions, "instances" | "providers"> {
  /** Inputs that every batch provides, although the file has values for them. Default: none. */
  readonly requiredInputs?: ReadonlyArray<string>
  /** Paths of the model's files with weights. */
  readonly weightFiles: ReadonlyArray<string>
}

/** Returns the instances of a model after checking its file. Tests pass another `spawn` to access the threads. */
export const source = Effect.fnUntraced(function* (
  definition: Definition<Fields, Fields>,
  options: OnnxOptions,
  spawn: WorkerInstance.Spawn = WorkerInstance.spawn,
): Effect.fn.Return<InstanceSet.InstanceSource<OnnxLoadError.OnnxLoadError, Scope.Scope>, OnnxLoadError.OnnxLoadError> {
  const file = pathOf(options)
  const reason =
    wrongCount(options) ??
    SessionPlan.providersProblem("providers", options.providers) ??
    Supervisor.wrongRestart(options.restart) ??
    Supervisor.wrongIdleTimeout(options.idleTimeout)
  if (reason !== undefined) return yield* OnnxLoadError.make(definition.name, file, reason)
  const { weightFiles } = yield* checked(definition, file)
  const { plan, providers } = SessionPlan.make(definition, options.instances, options.providers)
  return {
    plan,
    build: ({ details }) => session(definition, { ...options, weightFiles }, details.name, providers(details), spawn),
    isConcurrent: true,
  }
})

const pathOf = ({ file }: Pick<OnnxOptions, "file">): string => (file instanceof URL ? fileURLToPath(file) : file)

/** Creates one instance, from checked options and a checked file. */
export const session = (
  definition: Definition<Fields, Fields>,
  options: InstanceSessionOptions,
  name: string,
  providers: SessionPlan.Providers,
  spawn: WorkerInstance.Spawn = WorkerInstance.spawn,
): Effect.Effect<Instance, OnnxLoadError.OnnxLoadError, Scope.Scope> => {
  const sessionSettings = {
    file: pathOf(options),
    requiredInputs: options.requiredInputs ?? [],
    intraOpThreads: options.intraOpThreads ?? 1,
    interOpThreads: options.interOpThreads ?? 1,
    graphOptimization: options.graphOptimization ?? "all",
    memoryArena: options.memoryArena ?? true,
    providers,
  }
  const start = ModelSource.check(sessionSettings.file, options.weightFiles).pipe(
    Effect.mapError((reason) => OnnxLoadError.make(definition.name, sessionSettings.file, reason)),
    Effect.andThen(WorkerInstance.start({ name, definition, session: sessionSettings, spawn })),
  )
  const { restart = {}, idleTimeout } = options
  return Supervisor.make({ name, concurrency: () => Slots.slotCount, start, restart, idleTimeout })
}

/** Returns an error message if a numeric option is invalid, otherwise undefined. */
const wrongCount = (options: OnnxOptions): string | undefined => {
  for (const option of ["intraOpThreads", "interOpThreads"] as const) {
    const wrong = SessionPlan.countProblem(option, options[option] ?? 1)
    if (wrong !== undefined) return wrong
  }
  return SessionPlan.problem(options.instances)
}

/** Fails unless the file is an ONNX model that has the declared signature. */
const checked = Effect.fn("Instances.check")(function* (definition: Definition<Fields, Fields>, file: string) {
  const { name, signature, maxBatchSize } = definition
  const source = yield* Effect.mapError(ModelSource.read(file), (problem) =>
    OnnxLoadError.make(
      name,
      file,
      problem._tag === "NotOnnx" ? `it is not an ONNX model: ${problem.message}` : ModelSource.reason(problem),
    ),
  )
  const different = mismatches(signature, maxBatchSize, source.signature)
  if (different.length === 0) return source
  const reason = `its signature differs from the declaration:\n  ${different.join("\n  ")}`
  return yield* OnnxLoadError.make(name, file, reason, different)
})

/**
 * Creates instances from a file and options: reads the file's signature, compares it with the declaration, and starts a
 * supervised worker for each instance. Supervisor.ts restarts workers; WorkerInstance.ts communicates with one.
 */
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { Instance } from "@nereid/core/internal/instance/Instance"
import type * as InstanceSet from "@nereid/core/internal/instance/InstanceSet"
import * as Supervisor from "@nereid/core/internal/instance/Supervisor"
import { Effect, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import * as OnnxFile from "./OnnxFile.ts"
import * as OnnxLoadError from "./OnnxLoadError.ts"
import * as SessionPlan from "./SessionPlan.ts"
import { mismatches } from "./SignatureCheck.ts"
import * as Slots from "./Slots.ts"
import * as WorkerInstance from "./WorkerInstance.ts"
import type { GraphOptimization } from "./SessionProtocol.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export interface OnnxOptions {
  /** Path or file URL; a relative path is relative to the working directory. */
  readonly file: string | URL
  /**
   * Sessions, each in a thread that it blocks while it runs: a number of them, or a list of groups with execution providers of
   * their own, such as one per device. More give throughput up to the number of cores. Default 1.
   */
  readonly instances?: SessionPlan.SessionsOption
  /** Threads within an operator: for latency, at the price of throughput. Default 1. */
  readonly intraOpThreads?: number
  /** Operators that run at the same time; above 1 the graph is executed in parallel mode. Default 1. */
  readonly interOpThreads?: number
  /** Default `all`. */
  readonly graphOptimization?: GraphOptimization
  /** Whether the CPU provider keeps memory between runs: faster, and never given back. Default true. */
  readonly memoryArena?: boolean
  /**
   * Execution providers, the most wanted first. One that is not there fails the load, unless another one follows it in the
   * list: then a warning is logged. Single operators that a provider does not know run on the CPU, as always in ONNX
   * Runtime. Default `["cpu"]`.
   */
  readonly providers?: SessionPlan.Providers
  /** How a worker thread that died is started again. */
  readonly restart?: Supervisor.RestartOptions
}

/** Of a session whose instance and providers are decided. */
export interface InstanceSessionOptions extends Omit<OnnxOptions, "instances" | "providers"> {
  /** Inputs of the definition that the file has values for, which batches bring all the same. Default none. */
  readonly requiredInputs?: ReadonlyArray<string>
}

/** The instances of a model whose file has been looked at. Tests give another `spawn`, to get hold of the threads. */
export const source = Effect.fnUntraced(function* (
  definition: Definition<Fields, Fields>,
  options: OnnxOptions,
  spawn: WorkerInstance.Spawn = WorkerInstance.spawn,
): Effect.fn.Return<InstanceSet.InstanceSource<OnnxLoadError.OnnxLoadError, Scope.Scope>, OnnxLoadError.OnnxLoadError> {
  const file = pathOf(options)
  const reason =
    wrongCount(options) ??
    SessionPlan.providersProblem("providers", options.providers) ??
    Supervisor.wrongRestart(options.restart)
  if (reason !== undefined) return yield* OnnxLoadError.make(definition.name, file, reason)
  yield* check(definition, file)
  const { plan, providers } = SessionPlan.make(definition, options.instances, options.providers)
  return {
    plan,
    build: ({ details }) => session(definition, options, details.name, providers(details), spawn),
    isConcurrent: true,
  }
})

const pathOf = ({ file }: Pick<OnnxOptions, "file">): string => (file instanceof URL ? fileURLToPath(file) : file)

/** One instance, from options and a file that have been looked at. */
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
  const start = WorkerInstance.start({ name, definition, session: sessionSettings, spawn })
  return Supervisor.make({ name, concurrency: () => Slots.slotCount, start, restart: options.restart ?? {} })
}

/** Returns an error message if a numeric option is invalid, otherwise undefined. */
const wrongCount = (options: OnnxOptions): string | undefined => {
  for (const option of ["intraOpThreads", "interOpThreads"] as const) {
    const wrong = SessionPlan.countProblem(option, options[option] ?? 1)
    if (wrong !== undefined) return wrong
  }
  return SessionPlan.problem(options.instances)
}

/** Fails unless the file is there, is a model, and has the declared signature. */
const check = Effect.fn("Instances.check")(function* (definition: Definition<Fields, Fields>, file: string) {
  const { name, signature, maxBatchSize } = definition
  const different = mismatches(signature, maxBatchSize, yield* readSignature(name, file))
  if (different.length === 0) return
  const reason = `its signature is not the declared one:\n  ${different.join("\n  ")}`
  return yield* OnnxLoadError.make(name, file, reason, different)
})

const readSignature = Effect.fnUntraced(function* (model: string, file: string) {
  const bytes = yield* Effect.tryPromise({
    try: (signal) => readFile(file, { signal }),
    catch: (error) => OnnxLoadError.make(model, file, unreadable(error)),
  })
  return yield* Effect.try({
    try: () => OnnxFile.signature(bytes),
    catch: (error) => OnnxLoadError.make(model, file, `it is not an ONNX model: ${errorMessage(error)}`),
  })
})

const unreadable = (error: unknown): string =>
  error instanceof Error && "code" in error && error.code === "ENOENT" ? "there is no such file" : errorMessage(error)

/**
 * Instances of one version of a model in Python: a process for each, or one for all, restarted when it dies.
 * `Python.layer` is one owner, the version of a repository another.
 */
import { Effect, type Scope } from "effect"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import type { Instance } from "@nereid/core/internal/instance/Instance"
import type { PlannedInstance } from "@nereid/core/internal/instance/InstancePlan"
import * as Supervisor from "@nereid/core/internal/instance/Supervisor"
import * as InstanceThreads from "./InstanceThreads.ts"
import type { PythonLoadError } from "./PythonLoadError.ts"
import type { ModelPorts } from "./ModelPorts.ts"
import * as ModelProcess from "./ModelProcess.ts"
import type { InitializeArguments, ProcessOptions } from "./ProcessOptions.ts"
import * as ReadyCheck from "./ReadyCheck.ts"

export interface PythonModelOptions extends Omit<ProcessOptions, "name" | "args" | "threads" | "ports"> {
  /** All instances, if they are threads of one process. Default: a process for each. */
  readonly inThreads?: ReadonlyArray<PlannedInstance> | undefined
  readonly version: string
  /** The configuration as JSON, for `initialize`. */
  readonly config: string
  readonly restart: Supervisor.RestartOptions
  /** Kind of an instance for `initialize`. Default: that of its device. */
  readonly kind?: (instance: BuiltInstance) => string
  readonly ports: (instance: BuiltInstance) => ModelPorts
}

export interface PythonInstances {
  /** One instance, in a scope whose end stops its process. Threads of one process are built at the same time. */
  readonly build: (planned: PlannedInstance) => Effect.Effect<Instance, PythonLoadError, Scope.Scope>
  /** Whether the code of all instances says that it is ready. */
  readonly isReady: Effect.Effect<ReadyCheck.Readiness>
  /** Whether requests have any number of responses; known once an instance is built. */
  readonly decoupled: () => boolean
}

export const make = (options: PythonModelOptions): PythonInstances => {
  const processes = new Map<string, ModelProcess.ModelProcess>()
  let decoupled = options.decoupled
  const argsOf = (instance: BuiltInstance) =>
    argumentsOf(options, { ...instance, kind: options.kind?.(instance) ?? instance.kind })
  const start = (instance: BuiltInstance, threads: ReadonlyArray<BuiltInstance>) =>
    ModelProcess.start({
      ...options,
      name: instance.name,
      args: argsOf(instance),
      threads: threads.map((thread) => ({ name: thread.name, args: argsOf(thread) })),
      ports: options.ports(instance),
    }).pipe(
      Effect.tap((process) =>
        Effect.sync(() => {
          decoupled ||= ModelProcess.isGenerator(process.form)
          processes.set(instance.name, process)
        }),
      ),
    )
  const supervise = (instance: BuiltInstance, threads: ReadonlyArray<BuiltInstance> = []) =>
    Effect.andThen(
      Effect.addFinalizer(() => Effect.sync(() => processes.delete(instance.name))),
      Supervisor.make({
        name: [instance, ...threads.slice(-1)].map(({ name }) => name).join(" to "),
        executor: "process",
        concurrency: () => options.concurrency,
        interruptsRequests: true,
        interruptTimeout: options.limits.stopTimeout,
        start: start(instance, threads),
        restart: options.restart,
      }),
    )
  const [first, ...others] = (options.inThreads ?? []).map(({ details }) => details)
  const build = first === undefined ? supervise : InstanceThreads.make([first, ...others], supervise(first, others))
  return {
    build: ({ details }) => build(details),
    isReady: Effect.suspend(() =>
      Effect.map(
        Effect.forEach(processes.values(), ({ isReady }) => isReady, { concurrency: "unbounded" }),
        (all) => all.find(({ isReady }) => !isReady) ?? ReadyCheck.ready,
      ),
    ),
    decoupled: () => decoupled,
  }
}

/** The seven arguments of `initialize`. */
export const argumentsOf = (
  { model, version, config, source }: Pick<PythonModelOptions, "model" | "version" | "config" | "source">,
  { name, kind, gpu }: Pick<BuiltInstance, "name" | "gpu"> & { readonly kind: string },
): InitializeArguments => ({
  model_config: config,
  model_instance_kind: kind,
  model_instance_name: name,
  model_instance_device_id: String(gpu ?? 0),
  model_repository: source.modelDirectory,
  model_version: version,
  model_name: model,
})

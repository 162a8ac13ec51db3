/**
 * `Worker.layer`: runs a model with a CPU-bound handler in worker threads. The server's own thread stays free for
 * requests.
 */
import type { GivenOptions } from "@nereid/core/internal/model/GivenOptions"
import type { ModelClass } from "@nereid/core/internal/call/ModelClass"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import { defaultInterruptTimeout } from "@nereid/core/internal/instance/Instance"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import type { Declared, SequenceDeclared } from "@nereid/core/internal/model/Declared"
import * as Provide from "@nereid/core/internal/provide/Provide"
import * as Supervisor from "@nereid/core/internal/instance/Supervisor"
import { Duration, Effect, type Layer, Option, type Scope } from "effect"
import { isAbsolute, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import * as WorkerLoadError from "./WorkerLoadError.ts"
import * as WorkerThread from "./WorkerThread.ts"

export type { RestartOptions } from "@nereid/core/internal/instance/Supervisor"
export { WorkerData } from "./WorkerData.ts"
export { WorkerLoadError } from "./WorkerLoadError.ts"

/** Options of a model in worker threads. */
export interface LayerOptions<I extends Fields = Fields> extends Provide.ServingOptions<I> {
  /**
   * Number of threads, or a list of groups of threads. Each thread has a separate handler, whose InstanceContext names
   * its group. Default 1.
   */
  readonly instances?: number | ReadonlyArray<Omit<InstancePlan.GroupOptions, "layer">>
  /** Limits on restarting a thread that has died. */
  readonly restart?: Supervisor.RestartOptions
  /** Maximum time for a thread to build its handler. Default 1 minute. */
  readonly startTimeout?: Duration.Input
  /**
   * Maximum time that a batch may continue after its last request was cancelled. After it, the thread is terminated and
   * replaced. Default 10 seconds, and 1 second when the model unloads.
   */
  readonly cancelTimeout?: Duration.Input
  /** Maximum time for the finalizers of a handler, before its thread is terminated. Default 10 seconds. */
  readonly stopTimeout?: Duration.Input
  /**
   * Maximum JavaScript heap of each thread, in bytes; at least 16 MiB. A larger heap ends only this thread. If native
   * code allocates faster than V8 can stop it, V8 ends the process. Default: Node's limit, at which V8 may also end the
   * process.
   */
  readonly maxHeapBytes?: number
  /**
   * Node options of each thread, such as `["--enable-source-maps"]`; no options of V8 or the whole process. Default:
   * the options of the process.
   */
  readonly execArgv?: ReadonlyArray<string>
  /** Environment variables of each thread, added to a copy of the process's. Default: none. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * Data that the module's layer reads from WorkerData in each thread. It must be cloneable: functions are not, and an
   * instance of a class keeps only its fields. Default: none.
   */
  readonly data?: unknown
}

/** Module of a handler: its default export is the model's layer, as on the main thread. */
export interface HandlerModule<Self> {
  readonly default: Layer.Layer<Self, unknown>
}

/**
 * Provides a model from a module that exports its layer:
 *
 * ```ts
 * // hash.handler.ts
 * export default Model.each(Hash, ({ TEXT }) => ({ HASH: scryptSync(TEXT, "salt", 64) }))
 * ```
 * ```ts
 * // server.ts
 * import type * as hash from "./hash.handler.ts"
 *
 * const HashLive = Worker.layer<typeof hash>()(Hash, new URL("./hash.handler.ts", import.meta.url), { instances: 4 })
 * ```
 *
 * The type of the module is checked against the model: a layer of another model, or one that requires a service, does
 * not compile. Without the type argument, loading the thread fails with a WorkerLoadError instead. A model with
 * sequences does not compile either: its handler needs their states, which the main thread keeps.
 *
 * Handlers can do the same as on the main thread: build in a scope, read RequestContext, fail with Errors, stream.
 * Requests and responses are copied once, then transferred. Log messages go to the logger of the main thread. The
 * module must provide the models that its handler calls, and these run in the same thread.
 *
 * If a thread dies (`process.exit`, an uncaught error, a heap above its limit), only its current batch fails, and
 * another thread is started. A crash in native code ends the whole process.
 * @throws TypeError if an option is out of range
 */
export const layer =
  <Module = unknown>() =>
  <
    Self,
    N extends string,
    I extends Fields,
    O extends Fields,
    P extends Declared,
    const Given extends LayerOptions<I> = {},
  >(
    model: ModelClass<Self, N, I, O, P> & Fitting<Module, Self> & WithoutSequences<P>,
    module: URL | string,
    options?: GivenOptions<Given, LayerOptions<I>>,
  ): Layer.Layer<Self, WorkerLoadError.WorkerLoadError | Provide.Failure<Given>> => {
    const { definition } = model
    const settings = check(definition.name, options ?? {})
    const cache = options?.responseCache || undefined
    const plan = InstancePlan.make(definition.name, definition.version, options?.instances)
    const url = href(module)
    // Set by the first thread; all threads load the same module.
    let decoupled = false
    const start = Effect.fnUntraced(function* (instance: BuiltInstance) {
      const thread = yield* WorkerThread.start({ definition, module: url, instance, ...settings })
      decoupled = thread.decoupled
      if (!decoupled || cache === undefined) return thread
      yield* thread.stop
      const reason = "responseCache requires a model that is not decoupled"
      return yield* WorkerLoadError.make(definition.name, url, reason)
    }, Effect.uninterruptible)
    const build = ({ details: instance }: InstancePlan.PlannedInstance) =>
      Supervisor.make({
        name: instance.name,
        concurrency: () => (decoupled ? Math.max(1, definition.maxBatchSize) : 1),
        // A stop does not wait longer than other models do, unless the option asks for it.
        interruptTimeout: options?.cancelTimeout === undefined ? defaultInterruptTimeout : settings.cancelTimeout,
        start: start(instance),
        restart: options?.restart ?? {},
      })
    return Provide.fromInstances<Self, N, I, O, P, WorkerLoadError.WorkerLoadError, Scope.Scope, Given>(
      model,
      {
        platform: "nereid",
        threaded: true,
        decoupled: () => decoupled,
        // Inputs are copied into messages.
        keepsInputs: false,
        instances: Effect.succeed({ plan, build, isConcurrent: true }),
      },
      options,
    )
  }

/** unknown if the module's type fits or is not given; otherwise a type that makes the call fail to compile. */
type Fitting<Module, Self> = unknown extends Module
  ? unknown
  : Module extends HandlerModule<Self>
    ? unknown
    : { readonly "the module's default export is not a layer of this model": never }

/** The main thread keeps the states of sequences, and their handlers work with them. */
type WithoutSequences<P extends Declared> = P extends SequenceDeclared
  ? { readonly mistake: "a model with sequences cannot run in worker threads" }
  : unknown

type Settings = Omit<WorkerThread.ThreadOptions, "definition" | "module" | "instance">

/** Smallest heap in which a thread can start; V8 would end the process below it. */
const minHeapBytes = 16 * 2 ** 20

/**
 * Checks the options.
 * @throws TypeError if an option is out of range
 */
const check = (model: string, options: LayerOptions): Settings => {
  const wrong = (text: string) => new TypeError(`Model "${model}": ${text}.`)
  const restart = Supervisor.wrongRestart(options.restart)
  if (restart !== undefined) throw wrong(restart)
  const { maxHeapBytes, execArgv, env, data } = options
  if (maxHeapBytes !== undefined && !(Number.isSafeInteger(maxHeapBytes) && maxHeapBytes >= minHeapBytes)) {
    throw wrong(`maxHeapBytes must be an integer of at least ${minHeapBytes}, but ${maxHeapBytes} was given`)
  }
  const millis = (option: "startTimeout" | "cancelTimeout" | "stopTimeout", byDefault: Duration.Input) => {
    const given = options[option] ?? byDefault
    const value = Option.getOrUndefined(Option.map(Duration.fromInput(given), Duration.toMillis))
    // Timers of Node count up to there.
    if (value !== undefined && value > 0 && value < 2 ** 31) return value
    throw wrong(`${option} must be a time above 0 and below 24 days, but ${String(given)} was given`)
  }
  return {
    startTimeout: millis("startTimeout", "1 minute"),
    cancelTimeout: millis("cancelTimeout", "10 seconds"),
    stopTimeout: millis("stopTimeout", "10 seconds"),
    maxHeapBytes,
    execArgv,
    env,
    data,
  }
}

const href = (module: URL | string): string => {
  if (module instanceof URL) return module.href
  return module.startsWith("file:") ? module : pathToFileURL(isAbsolute(module) ? module : resolve(module)).href
}

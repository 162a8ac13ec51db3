/**
 * The vocabulary for users: `Worker.layer` provides a model from a module whose handler burns CPU, in worker threads: the thread
 * of the server stays free for its callers.
 */
import type { GivenOptions } from "@nereid/core/internal/model/GivenOptions"
import type { ModelClass } from "@nereid/core/internal/call/ModelClass"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { BuiltInstance } from "@nereid/core/InstanceContext"
import * as InstancePlan from "@nereid/core/internal/instance/InstancePlan"
import type { Declared } from "@nereid/core/internal/model/Declared"
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

export interface LayerOptions<I extends Fields = Fields> extends Provide.ServingOptions<I> {
  /**
   * Threads, each with a handler of its own: a number of them, or a list of groups, of which each handler is told its own
   * (InstanceContext). Default 1.
   */
  readonly instances?: number | ReadonlyArray<Omit<InstancePlan.GroupOptions, "layer">>
  /** How a thread that died is started again. */
  readonly restart?: Supervisor.RestartOptions
  /** How long a thread may take until its handler is built. Default 1 minute. */
  readonly startTimeout?: Duration.Input
  /**
   * How long a batch that nobody waits for any more may go on. Then its thread is ended, whatever it does, and another one is
   * started in its place. Default 10 seconds.
   */
  readonly cancelTimeout?: Duration.Input
  /** How long the finalizers of a handler may take before its thread is ended. Default 10 seconds. */
  readonly stopTimeout?: Duration.Input
  /**
   * Bytes of the JavaScript heap of each thread, at least 16 MiB; more ends the thread, and no other, unless native code takes memory
   * faster than V8 can stop it: then V8 ends the process. Default Node's own limit, at which V8 may end the process as well.
   */
  readonly maxHeapBytes?: number
  /**
   * Options of Node for each thread, such as `["--enable-source-maps"]`; those of V8 and of the whole process are none. Default those
   * that the process was started with.
   */
  readonly execArgv?: ReadonlyArray<string>
  /** Environment variables of each thread, beside those of the process, of which each thread has a copy. Default none. */
  readonly env?: Readonly<Record<string, string>>
  /**
   * What the layer of the module finds as WorkerData in each thread: anything that can be cloned, which is no function, and of a class
   * no more than its fields. Default nothing.
   */
  readonly data?: unknown
}

/** What the module of a handler exports: the layer of its model, as it would be on the main thread. */
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
 * The type of the module is checked against the model: one that exports the layer of another one, or one that still needs a
 * service, does not compile. Without it, both are found out when the thread loads, as is a module that cannot be loaded.
 *
 * Handlers are what they are on the main thread: they may be built by an Effect in a scope, have RequestContext, fail with
 * Errors, stream. Requests and answers are copied once, and transferred. What handlers log goes through the logger of the main
 * thread. Models that a handler calls must be provided by its module, so in its thread.
 *
 * A thread that dies (`process.exit`, an error that nobody catches, a heap that has grown too large) takes the batch that it had, which fails, and
 * nothing else; another one is started. Native code that aborts takes the process with it, as threads share it.
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
    model: ModelClass<Self, N, I, O, P> & Fitting<Module, Self>,
    module: URL | string,
    options?: GivenOptions<Given, LayerOptions<I>>,
  ): Layer.Layer<Self, WorkerLoadError.WorkerLoadError | Provide.Failure<Given>> => {
    const { definition } = model
    const settings = check(definition.name, options ?? {})
    const cache = options?.responseCache || undefined
    const plan = InstancePlan.make(definition.name, definition.version, options?.instances)
    const url = href(module)
    // What the first thread says, and then all: they load the same module.
    let decoupled = false
    const start = Effect.fnUntraced(function* (instance: BuiltInstance) {
      const thread = yield* WorkerThread.start({ definition, module: url, instance, ...settings })
      decoupled = thread.decoupled
      if (!decoupled || cache === undefined) return thread
      yield* thread.stop
      const reason = "responseCache is not for a model with any number of responses"
      return yield* WorkerLoadError.make(definition.name, url, reason)
    }, Effect.uninterruptible)
    const build = ({ details: instance }: InstancePlan.PlannedInstance) =>
      Supervisor.make({
        name: instance.name,
        concurrency: () => (decoupled ? Math.max(1, definition.maxBatchSize) : 1),
        start: start(instance),
        restart: options?.restart ?? {},
      })
    return Provide.fromInstances<Self, N, I, O, P, WorkerLoadError.WorkerLoadError, Scope.Scope, Given>(
      model,
      {
        platform: "nereid",
        decoupled: () => decoupled,
        // Copied into messages.
        keepsInputs: false,
        instances: Effect.succeed({ plan, build, isConcurrent: true }),
      },
      options,
    )
  }

/** Nothing where the type of the module is not given, or fits; else what keeps the call from compiling. */
type Fitting<Module, Self> = unknown extends Module
  ? unknown
  : Module extends HandlerModule<Self>
    ? unknown
    : { readonly "the module's default export is no layer of this model": never }

type Settings = Omit<WorkerThread.ThreadOptions, "definition" | "module" | "instance">

/** A thread with less has no room to start in: V8 would end the process. */
const minHeapBytes = 16 * 2 ** 20

/** @throws TypeError where an option is out of range */
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

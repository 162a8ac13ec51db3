/** Worker thread of one instance: loads the module, executes batches until "Stop", and releases the module's layer. */
import { Cause, Effect, Exit, Layer, Logger, References, Scope } from "effect"
import { parentPort, workerData } from "node:worker_threads"
import { inspect } from "node:util"
import { MetricSink } from "@nereid/core/internal/metrics/MetricSink"
import * as ForwardedMetrics from "./ForwardedMetrics.ts"
import { HostedModel, load } from "./HostedModel.ts"
import { WorkerData } from "./WorkerData.ts"
import type { FromThread, LogLevelName, ThreadStart, ToThread } from "./ThreadProtocol.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

const { module, instance, data }: ThreadStart = workerData

const post = (message: FromThread, transfer: ReadonlyArray<ArrayBuffer> = []) =>
  parentPort?.postMessage(message, [...transfer])

/** Forwards log messages of all levels to the logger of the main thread, whose settings may change. */
const logging = Logger.layer([
  Logger.make(({ cause, logLevel, message }) => {
    const parts = (Array.isArray(message) ? message : [message]).map((part) =>
      typeof part === "string" ? part : inspect(part),
    )
    if (cause.reasons.length > 0) parts.push(Cause.pretty(cause))
    post({ _tag: "Log", level: levelName(logLevel), message: parts.join(" ") })
  }),
])

const levels: ReadonlyArray<string> = ["Fatal", "Error", "Warn", "Info", "Debug", "Trace"] satisfies Array<LogLevelName>

const levelName = (level: string): LogLevelName => (levels.includes(level) ? (level as LogLevelName) : "Info")

let model: HostedModel | undefined

// From the beginning: it keeps the thread, also while what it loads waits for something that does not.
parentPort?.on("message", (message: ToThread) => {
  if (message._tag === "Stop") void stop()
  else model?.receive(message)
})

const metrics = ForwardedMetrics.make(post)
const scope = Scope.makeUnsafe()
const build = Effect.flatMap(Layer.build(logging), (context) =>
  load(module, instance).pipe(
    Effect.provideService(MetricSink, metrics.declare),
    Effect.provideService(WorkerData, data),
    Effect.provideService(References.MinimumLogLevel, "Trace"),
    Effect.provideContext(context),
  ),
)
const loaded = await Effect.runPromiseExit(Scope.provide(build, scope))

const stop = async () => {
  const closed = await Effect.runPromiseExit(Scope.close(scope, Exit.void))
  if (Exit.isFailure(closed)) {
    const message = `Instance ${instance.name} failed while it was released ${Cause.pretty(closed.cause)}`
    post({ _tag: "Log", level: "Error", message })
  }
  // Exits even if the module has left timers or handles open.
  process.exit(0)
}

if (Exit.isFailure(loaded)) {
  const error = Cause.squash(loaded.cause)
  post({ _tag: "LoadFailed", message: errorMessage(error) })
  await stop()
} else {
  model = new HostedModel(loaded.value, (message, transfer) => {
    metrics.flush()
    post(message, transfer)
  })
  post(model.ready)
}

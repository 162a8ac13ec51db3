/** The thread of one instance: loads the module, answers until it is told to stop, and releases what the module's layer has. */
import { Cause, Effect, Exit, Layer, Logger, Scope } from "effect"
import { parentPort, workerData } from "node:worker_threads"
import { inspect } from "node:util"
import { HostedModel, load } from "./HostedModel.ts"
import type { FromThread, LogLevelName, Start, ToThread } from "./WorkerProtocol.ts"

const { module, instance }: Start = workerData

const post = (message: FromThread, transfer: ReadonlyArray<ArrayBuffer> = []) =>
  parentPort?.postMessage(message, [...transfer])

/** What is logged here goes through the logger of the main thread. */
const forwarding = Logger.layer([
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

const scope = Scope.makeUnsafe()
const build = Effect.flatMap(Layer.build(forwarding), (context) =>
  Effect.provideContext(load(module, instance), context),
)
const loaded = await Effect.runPromiseExit(Scope.provide(build, scope))

const stop = async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void))
  // What the module has left open, such as a timer, does not keep the thread.
  process.exit(0)
}

if (Exit.isFailure(loaded)) {
  const error = Cause.squash(loaded.cause)
  post({ _tag: "LoadFailed", message: error instanceof Error ? error.message : String(error) })
  await stop()
} else {
  const model = new HostedModel(loaded.value, post)
  parentPort?.on("message", (message: ToThread) => {
    if (message._tag === "Stop") void stop()
    else model.receive(message)
  })
  post(model.ready)
}

/** A handler that computes, waits, logs, fails or dies, as its text says. No test is in here. */
import { fromTag } from "@nereid/core/internal/error/InferenceError"
import { Errors, InstanceContext, Metrics, Model, RequestContext } from "@nereid/core"
import { Effect } from "effect"
import { isMainThread, threadId } from "node:worker_threads"
import { inspect } from "node:util"
import { Command } from "./Command.fixture.ts"
import { WorkerData } from "./WorkerData.ts"

let requestCount = 0

const handlers: Record<string, (rest: string) => Effect.Effect<string, unknown, RequestContext>> = {
  echo: (rest) => Effect.succeed(rest),
  thread: () => Effect.succeed(`${isMainThread} ${threadId > 0} ${(requestCount += 1)}`),
  runtime: () =>
    Effect.sync(() => `${process.execArgv.join(" ")} ${process.env["OF_THE_THREAD"]} ${process.env["HOME"]}`),
  exit: (code) => Effect.sync(() => process.exit(Number(code))),
  throw: (rest) =>
    Effect.callback(() => {
      setTimeout(() => {
        throw new Error(rest)
      }, 0)
    }),
  heap: () =>
    Effect.callback(() => {
      const kept: Array<unknown> = []
      const more = () => {
        kept.push(Array.from({ length: 10_000 }, () => ({})))
        setImmediate(more)
      }
      more()
    }),
  abort: () => Effect.sync(() => process.abort()),
  spin: () =>
    Effect.andThen(
      Effect.log("begins"),
      Effect.sync(() => {
        for (;;);
      }),
    ),
  wait: () =>
    Effect.andThen(Effect.log("begins"), Effect.never).pipe(Effect.onInterrupt(() => Effect.log("interrupted"))),
  fail: (tag) => Effect.fail(fromTag(tag, `it is ${tag}`) ?? new Error(tag)),
  later: (millis) => Effect.fail(new Errors.QueueFull({ message: "later", retryAfter: Number(millis) })),
  lose: (rest) => Effect.fail(new Errors.Unrecoverable({ message: rest })),
  die: (rest) => Effect.die(new Error(rest)),
  context: () =>
    Effect.gen(function* () {
      const { id, rows, parameters, requestedOutputs, remaining, setParameter } = yield* RequestContext
      yield* setParameter("seen", 7n)
      const left = remaining()
      const isLeft = left !== undefined && left > 0 && left <= 60_000
      return `${id} ${rows} ${String(parameters["a"])} ${String(requestedOutputs)} ${isLeft}`
    }),
}

export default Model.each(
  Command,
  Effect.gen(function* () {
    const { name, gpu } = yield* InstanceContext
    const data = yield* WorkerData
    const commands = yield* Metrics.counter("test_commands", {
      description: "Commands, by name",
      labels: { command: 20 },
    })
    yield* Effect.acquireRelease(Effect.log(`${name} on ${gpu} initializes`), () => Effect.log(`${name} finalizes`))
    return Effect.fnUntraced(function* ({ TEXT }) {
      const [command = "", rest = ""] = TEXT.split(/ (.*)/)
      commands.add(1, { command })
      if (command === "instance") return { ANSWER: name }
      if (command === "data") return { ANSWER: inspect(data) }
      if (command === "log") return yield* Effect.as(Effect.logWarning(rest), { ANSWER: "logged" })
      const run = handlers[command] ?? (() => Effect.fail(new Error(`no command '${command}'`)))
      return { ANSWER: yield* run(rest) }
    })
  }),
)

import { expect, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as LogLine from "./LogLine.ts"

/** Returns the lines that an effect logs, with N for the number of the fiber. */
const lines = Effect.fnUntraced(function* (
  effect: Effect.Effect<void>,
  format: "default" | "ISO8601" = "default",
  escapeMessages = true,
) {
  const printed: Array<string> = []
  const logger = Logger.make((event) => {
    printed.push(LogLine.print(event, { format, escapeMessages }, 4242).replace(/fiber:[0-9]+\]/, "fiber:N]"))
  })
  yield* TestClock.setTime(Date.UTC(2026, 10, 1, 4, 9, 49, 7))
  yield* effect.pipe(Effect.provide(Logger.layer([logger])))
  return printed
})

it.effect("has level, date, time to the microsecond, process, and who logged, in both formats", () =>
  Effect.gen(function* () {
    const all = Effect.all([Effect.logInfo("a"), Effect.logWarning("b"), Effect.logError("c"), Effect.logFatal("d")], {
      discard: true,
    })
    expect(yield* lines(all)).toEqual([
      'I1101 04:09:49.007000 4242 fiber:N] "a"',
      'W1101 04:09:49.007000 4242 fiber:N] "b"',
      'E1101 04:09:49.007000 4242 fiber:N] "c"',
      'E1101 04:09:49.007000 4242 fiber:N] "d"',
    ])
    expect(yield* lines(Effect.logInfo("a"), "ISO8601")).toEqual(['2026-11-01T04:09:49Z I 4242 fiber:N] "a"'])
  }),
)

it.effect("is one line, whatever is logged: control characters, quotes and other line ends are escaped", () =>
  Effect.gen(function* () {
    const [line = ""] = yield* lines(Effect.logInfo('a"b\\\n\rI1101 forged\u001b[31m\u007f\u009b\u2028\u0000ä'))
    expect(line.slice(line.indexOf("] ") + 2)).toBe(
      String.raw`"a\"b\\\n\rI1101 forged\u001b[31m\u007f\u009b\u2028\u0000ä"`,
    )
  }),
)

it.effect("without escapes, the message is as it came, without quotes", () =>
  Effect.gen(function* () {
    const message = 'a"b\\\n\u001b[31m'
    expect(yield* lines(Effect.logInfo(message), "default", false)).toEqual([
      `I1101 04:09:49.007000 4242 fiber:N] ${message}`,
    ])
    expect(yield* lines(Effect.logInfo("a"), "ISO8601", false)).toEqual(["2026-11-01T04:09:49Z I 4242 fiber:N] a"])
  }),
)

it.effect("has what is not text, annotations and causes in its message", () =>
  Effect.gen(function* () {
    const effect = Effect.fail(new Error("broken")).pipe(
      Effect.catchCause((cause) => Effect.logError("it failed", { code: 3 }, cause)),
      Effect.annotateLogs({ model: "m" }),
    )
    const [line = ""] = yield* lines(effect)
    expect(line).toContain(String.raw`"it failed { code: 3 } model=m Error: broken\n`)
    expect(line).not.toContain("\n")
  }),
)

/** JSON lines of the log. Those of a server, its models and its calls: Logging.test.ts. */
import { expect, it } from "@effect/vitest"
import { Effect, Logger, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { CallLine } from "./CallLine.ts"
import { printJson } from "./JsonLine.ts"

const lines = Effect.fnUntraced(function* (effect: Effect.Effect<void>) {
  const printed: Array<string> = []
  const logger = Logger.make((event) => {
    printed.push(printJson(event, 4242))
  })
  yield* TestClock.setTime(Date.UTC(2026, 10, 1, 4, 9, 49, 7))
  yield* effect.pipe(Effect.provide(Logger.layer([logger])))
  return printed
})

const always = { time: "2026-11-01T04:09:49.007Z", pid: 4242, fiber: expect.any(Number) }

const parsed = (effect: Effect.Effect<void>) =>
  Effect.map(lines(effect), (all): ReadonlyArray<unknown> => all.map((line) => JSON.parse(line)))

it.effect("have time, level and message, process and fiber", () =>
  Effect.gen(function* () {
    expect(yield* parsed(Effect.andThen(Effect.logInfo("a", { code: 3 }), Effect.logFatal("b")))).toEqual([
      { ...always, level: "INFO", message: "a { code: 3 }" },
      { ...always, level: "FATAL", message: "b" },
    ])
  }),
)

it.effect("have annotations, the cause and the span, and no annotation replaces another member", () =>
  Effect.gen(function* () {
    const circular: Record<string, unknown> = {}
    circular["self"] = circular
    const effect = Effect.fail(new Error("broken")).pipe(
      Effect.catchCause((cause) => Effect.logError("it failed", cause)),
      Effect.annotateLogs({ model: "m", big: 7n, ratio: 0.5, none: Number.NaN, ok: true, circular, level: "forged" }),
      Effect.withParentSpan(
        Tracer.externalSpan({ traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" }),
      ),
    )
    expect(yield* parsed(effect)).toEqual([
      {
        ...always,
        level: "ERROR",
        message: "it failed",
        cause: expect.stringMatching(/^Error: broken\n +at /),
        trace_id: "0af7651916cd43dd8448eb211c80319c",
        span_id: "b7ad6b7169203331",
        model: "m",
        big: "7",
        ratio: 0.5,
        none: "NaN",
        ok: true,
        circular: expect.stringContaining("[Circular *1]"),
      },
    ])
  }),
)

it.effect("have the fields of a call beside its text", () =>
  Effect.gen(function* () {
    const fields = { operation: "POST /v2/x", status: "200", duration_ms: 1.5, model: "m", request_id: "7" }
    expect(yield* parsed(Effect.logInfo(new CallLine(fields)))).toEqual([
      { ...always, level: "INFO", message: "POST /v2/x: 200, 1.500 ms, model 'm', id '7'", ...fields },
    ])
  }),
)

it.effect("are one line each, whatever is logged", () =>
  Effect.gen(function* () {
    const text = 'a"b\\\n\r{"level":"forged"}\u001b[31m\u007f\u009b\u2028\u0000ä'
    const [line = ""] = yield* lines(Effect.logInfo(text))
    // oxlint-disable-next-line no-control-regex -- the characters that must not be there
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/)
    expect(JSON.parse(line)).toMatchObject({ message: text, level: "INFO" })
  }),
)

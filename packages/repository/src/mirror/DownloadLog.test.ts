import { expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as DownloadLog from "./DownloadLog.ts"

/** The log of one model in a scope of its own, and its lines. */
const fixture = Effect.gen(function* () {
  const lines: Array<string> = []
  const scope = yield* Scope.make()
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  const context = yield* Layer.buildWithScope(logger, scope)
  const provided = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, context)
  const log = yield* provided(Scope.provide(DownloadLog.make("digits"), scope))
  return { log, lines, end: (exit: Exit.Exit<void>) => provided(Scope.close(scope, exit)) }
})

it.effect("a download is logged every five seconds, and at its end with its speed", () =>
  Effect.gen(function* () {
    const { log, lines, end } = yield* fixture
    log.begin(40_000_000, 2)
    log.onBytes(10_000_000)
    yield* TestClock.adjust("4 seconds")
    expect(lines).toEqual([])
    yield* TestClock.adjust("1 second")
    expect(lines).toEqual(["Model 'digits': downloaded 10.0 MB of 40.0 MB (25 %, 2.0 MB/s)"])
    log.onBytes(20_000_000)
    yield* TestClock.adjust("5 seconds")
    expect(lines.slice(1)).toEqual(["Model 'digits': downloaded 30.0 MB of 40.0 MB (75 %, 3.0 MB/s)"])
    log.onBytes(10_000_000)
    yield* end(Exit.void)
    expect(lines.slice(2)).toEqual(["Model 'digits': downloaded 2 files, 40.0 MB in 10.0 s (4.0 MB/s)"])
    yield* TestClock.adjust("1 minute")
    expect(lines).toHaveLength(3)
  }),
)

it.effect("a load that downloads nothing has no line, and one that fails has none at its end", () =>
  Effect.gen(function* () {
    const nothing = yield* fixture
    yield* TestClock.adjust("1 minute")
    yield* nothing.end(Exit.void)
    expect(nothing.lines).toEqual([])
    expect(nothing.log.progress()).toBe(undefined)
    const failing = yield* fixture
    failing.log.begin(1000, 1)
    expect(failing.log.progress()).toBe("downloaded 0 B of 1.0 KB (0 %)")
    yield* failing.end(Exit.die("refused"))
    expect(failing.lines).toEqual([])
  }),
)

it.effect("bytes that arrive again after a damage do not exceed the whole", () =>
  Effect.gen(function* () {
    const { log, end } = yield* fixture
    log.begin(1000, 1)
    log.onBytes(1500)
    expect(log.progress()).toBe("downloaded 1.0 KB of 1.0 KB (100 %)")
    yield* end(Exit.void)
  }),
)

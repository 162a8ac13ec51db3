import { expect, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { describe } from "vitest"
import { Cluster, SequenceStore } from "./index.ts"
import { type Runner, sharding, start } from "./Runners.fixture.ts"
import { layer as sqlite } from "./store/Sqlite.fixture.ts"
import { Sums, SumsLive } from "./Sums.fixture.ts"

const count = 40

/** Requests that the runner has executed. */
const executed = ({ context }: Runner<Sums>): number =>
  Context.get(context, Sums).model.description.statistics.success.count

/** A runner and its sequences in one database, for as many runners as a test starts. */
const runnerOf = Effect.fnUntraced(function* (options: Cluster.ClusterOptions = {}) {
  const database = Layer.succeedContext(yield* Layer.build(sqlite(":memory:")))
  return Cluster.layer(Sums, SumsLive, options).pipe(
    Layer.provide([SequenceStore.layerSql(), sharding()]),
    Layer.provide(database),
  )
})

const sessionsOf = ({ context }: Runner<Sums>) =>
  Effect.all(Array.from({ length: count }, () => Context.get(context, Sums).session()))

describe.each(["onMove", "eachRequest"] as const)("sequences that are stored %s", (persist) => {
  it.live("move when a runner stops and when one joins, and none is lost", () =>
    Effect.gen(function* () {
      const runner = yield* runnerOf({ persist })
      const first = yield* start(runner)
      const second = yield* start(runner)
      const sessions = yield* sessionsOf(second)
      let total = 0
      const round = Effect.suspend(() => {
        total += 1
        const calls = Effect.forEach(sessions, (session) => session.infer({ VALUE: 1 }), { concurrency: "unbounded" })
        return Effect.map(calls, (totals) =>
          expect(totals).toEqual(Array.from({ length: count }, () => ({ TOTAL: total }))),
        )
      })
      while (executed(first) === 0) yield* round
      const stopping = yield* Effect.forkChild(first.stop)
      while (stopping.pollUnsafe() === undefined) yield* round
      const third = yield* start(runner)
      while (executed(third) < count) yield* round
      expect(executed(second)).toBeGreaterThan(count)
    }).pipe(Effect.scoped),
  )
})

/**
 * Fuzzing by mutation: Fuzzing.ts sends nearly valid requests. Each must receive its outputs or an error of the
 * protocol, as an oracle says. Afterwards the server must be healthy, its queues empty, and its counters complete.
 *
 * NEREID_FUZZ_SEED and NEREID_FUZZ_COUNT select the requests; NEREID_FUZZ_FIRST is the number of the first.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ServerUnderTest } from "../ServerUnderTest.ts"
import { fuzz, totals } from "./Fuzzing.ts"
import { count, first, seed } from "./settings.ts"

layer(ServerUnderTest.layer, { excludeTestServices: true })("fuzzing", (it) => {
  it.effect(
    `${count} requests that are nearly right, seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const { normal, connect } = yield* ServerUnderTest
        const ports = { ...normal, connect: connect.grpc }
        const before = yield* Effect.promise(() => totals(ports))
        const { problems, counted } = yield* Effect.promise(() => fuzz(ports, { seed, first, count }))
        const after = yield* Effect.promise(() => totals(ports))
        const rerun = `NEREID_FUZZ_SEED=${seed} NEREID_FUZZ_FIRST=<number> NEREID_FUZZ_COUNT=1`
        assert.deepStrictEqual(problems.slice(0, 10), [], `${problems.length} problems; one alone: ${rerun}`)
        const { success, fail } = counted
        assert.deepStrictEqual(
          { success: after.success - before.success, fail: after.fail - before.fail, waiting: after.waiting },
          { success, fail, waiting: 0 },
        )
        // Neither all right nor all wrong, or it would prove little.
        if (count >= 1000) assert.isAbove(Math.min(success, fail, counted.not), count / 20)
      }),
    180_000,
  )
})

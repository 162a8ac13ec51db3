/** Stores of sequences in one PostgreSQL database, where it is installed. */
import { PgClient } from "@effect/sql-pg"
import { SequenceStore } from "@nereid/cluster"
import { Effect, Layer, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { Postgres, programs } from "./Postgres.ts"

const processes = 10

describe.skipIf(programs === undefined)("stores of processes that start at once", () => {
  it("create their table together", { timeout: 60_000 }, async () => {
    await using postgres = await Postgres.start()
    const database = PgClient.layer({ url: Redacted.make(postgres.url), maxConnections: 1 })
    const start = Effect.gen(function* () {
      const clients = yield* Effect.all(Array.from({ length: processes }, () => Layer.build(Layer.fresh(database))))
      for (let round = 0; round < 20; round++) {
        const store = SequenceStore.layerSql({ table: `sequences_${round}` })
        const stores = clients.map((client) => Layer.build(Layer.fresh(store)).pipe(Effect.provide(client)))
        yield* Effect.all(stores, { concurrency: "unbounded" })
      }
    })
    expect(await Effect.runPromiseExit(Effect.scoped(start))).toMatchObject({ _tag: "Success" })
  })
})

/** A SqlClient over Node's own SQLite, so that the tests of SQL storage need no server and no package. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import { Effect, Layer, Semaphore, Stream } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"

/** A database in this file, which several processes may open; `:memory:` for one of this layer alone. */
export const layer = (file: string): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effect(
    SqlClient.SqlClient,
    Effect.gen(function* () {
      const database = yield* Effect.acquireRelease(
        Effect.sync(() => new DatabaseSync(file, { timeout: 10_000 })),
        (database) => Effect.sync(() => database.close()),
      )
      database.exec("PRAGMA journal_mode = WAL")
      const run = <A>(execute: () => A) =>
        Effect.try({
          try: execute,
          catch: (cause) => new SqlError({ reason: new UnknownError({ cause, message: String(cause) }) }),
        })
      const rows = (sql: string, params: ReadonlyArray<unknown>) =>
        run(() => database.prepare(sql).all(...params.map(inputOf)))
      const connection: Connection = {
        execute: (sql, params, transform) =>
          Effect.map(rows(sql, params), (found) => (transform === undefined ? found : transform(found))),
        executeRaw: rows,
        executeValues: (sql, params) =>
          Effect.map(rows(sql, params), (found) => found.map((row) => Object.values(row))),
        executeValuesUnprepared: (sql, params) =>
          Effect.map(rows(sql, params), (found) => found.map((row) => Object.values(row))),
        executeUnprepared: (sql, params) => rows(sql, params),
        executeStream: (sql, params) => Stream.fromIterableEffect(rows(sql, params)),
      }
      const acquirers = SqlClient.makeSqliteAcquirers({
        connection: Effect.succeed(connection),
        semaphore: yield* Semaphore.make(1),
        isTransaction: () => database.isTransaction,
      })
      return yield* SqlClient.make({
        ...acquirers,
        compiler: Statement.makeCompilerSqlite(),
        driver: "node:sqlite",
        beginTransaction: "BEGIN IMMEDIATE",
        spanAttributes: [],
      })
    }),
  ).pipe(Layer.provide(Reactivity.layer))

const inputOf = (value: unknown): SQLInputValue => {
  if (typeof value === "boolean") return value ? 1 : 0
  if (value === null || typeof value === "string" || typeof value === "number" || typeof value === "bigint")
    return value
  throw new TypeError(`SQLite takes no ${typeof value}`)
}

/** Stored sequences in a table of a SQL database, beside the tables of Effect's cluster. */
import { Array as Arr, Clock, Effect, Layer, Schedule } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import {
  expiredFor,
  type OwnedPart,
  SequenceStore,
  SequenceStoreError,
  type StoredSequence,
  StoreTaken,
} from "./SequenceStore.ts"

/** Options of `layerSql`. */
export interface SqlStoreOptions {
  /** Name of the table, which is created where it does not exist. Default `nereid_sequences`. */
  readonly table?: string
}

/** The largest time that all databases and JavaScript have: for sequences that never expire. */
const never = Number.MAX_SAFE_INTEGER

/** Sequences of one statement: databases limit its parameters. */
const chunk = 500

/**
 * Time that PostgreSQL waits for the next statement of a transaction, in milliseconds. A process that stands still
 * within one would keep the rows of its parts locked, so that their next owners would wait for it.
 */
const transactionIdle = 3000

/** Time between deletions of sequences that have expired long ago. */
const sweepInterval = "1 minute"

interface Row {
  readonly id: string
  readonly state: string | null
  readonly last_call: string | null
  readonly last_reply: string | null
  /** Databases return it as a string or as a number. */
  readonly expires_at: string | number | bigint
}

/**
 * Keeps sequences in a table of the cluster's database, by the `SqlClient` of the program. Fails with
 * `SequenceStoreError` if the database refuses the table.
 */
export const layer = ({ table = "nereid_sequences" }: SqlStoreOptions = {}): Layer.Layer<
  SequenceStore,
  SequenceStoreError,
  SqlClient.SqlClient
> =>
  Layer.effect(
    SequenceStore,
    Effect.gen(function* () {
      const sql = (yield* SqlClient.SqlClient).withoutTransforms()
      const clock = yield* Clock.Clock
      const name = sql(table)
      yield* failing("create the table", createTable(sql, table))
      /** Makes PostgreSQL end a transaction of a process that stands still, and returns ids of rows that were changed. */
      const returning = sql.onDialectOrElse({
        pg: () =>
          sql`RETURNING id, set_config('idle_in_transaction_session_timeout', ${String(transactionIdle)}, true)`,
        orElse: () => sql.literal(""),
      })
      const deleteIds = ({ model, part }: OwnedPart, ids: ReadonlyArray<string>) =>
        sql`DELETE FROM ${name} WHERE model = ${model} AND part = ${part} AND ${sql.in("id", ids)}`
      const insert = (owned: OwnedPart, sequences: Arr.NonEmptyReadonlyArray<StoredSequence>) =>
        sql`INSERT INTO ${name} ${sql.insert(Arr.map(sequences, (sequence) => columns(owned, sequence)))}`
      const rowsOf = ({ model, part }: OwnedPart) => sql<Row>`
        SELECT id, state, last_call, last_reply, expires_at FROM ${name}
        WHERE model = ${model} AND part = ${part} AND expires_at > ${clock.currentTimeMillisUnsafe() - expiredFor}`
      /** Locks the row of the owner, so that no other one takes the part before the transaction ends. */
      const check = Effect.fnUntraced(function* ({ model, part, owner }: OwnedPart) {
        const where = sql`model = ${model} AND part = ${part} AND id = ${ownerId} AND last_call = ${owner}`
        yield* sql`UPDATE ${name} SET expires_at = ${never} WHERE ${where} ${returning}`
        const [row] = yield* sql`SELECT id FROM ${name} WHERE ${where}`
        if (row === undefined) return yield* new StoreTaken({ message: `part ${part} of '${model}' has another owner` })
      })
      const write = (what: string, owned: OwnedPart, change: Effect.Effect<unknown, SqlError>) =>
        failing(what, sql.withTransaction(Effect.andThen(check(owned), Effect.asVoid(change))))
      const expired = Effect.suspend(
        () => sql`DELETE FROM ${name} WHERE expires_at <= ${clock.currentTimeMillisUnsafe() - expiredFor}`,
      )
      yield* expired.pipe(Effect.ignore, Effect.schedule(Schedule.spaced(sweepInterval)), Effect.forkScoped)
      return SequenceStore.of({
        take: (owned) =>
          failing(
            "take sequences",
            sql.withTransaction(
              Effect.gen(function* () {
                yield* sql`${deleteIds(owned, [ownerId])} ${returning}`
                yield* sql`${insert(owned, [ownerOf(owned)])} ${returning}`
                return (yield* rowsOf(owned)).filter(({ id }) => id !== ownerId).map(sequenceOf)
              }),
            ),
          ),
        put: (owned, sequences) =>
          write(
            "store sequences",
            owned,
            Effect.forEach(
              Arr.chunksOf(sequences, chunk),
              (some) =>
                Effect.andThen(
                  deleteIds(
                    owned,
                    some.map(({ id }) => id),
                  ),
                  insert(owned, some),
                ),
              { discard: true },
            ),
          ),
        remove: (owned, ids) =>
          write(
            "remove sequences",
            owned,
            Effect.forEach(Arr.chunksOf(ids, chunk), (some) => deleteIds(owned, some), { discard: true }),
          ),
      })
    }),
  )

const failing = <A, E extends SqlError | StoreTaken>(
  what: string,
  effect: Effect.Effect<A, E>,
): Effect.Effect<A, SequenceStoreError | Extract<E, StoreTaken>> =>
  Effect.mapError(effect, (error: SqlError | StoreTaken) => {
    if (error._tag !== "SqlError") return error as Extract<E, StoreTaken>
    return new SequenceStoreError({ message: `cannot ${what}: ${error.message}`, cause: error })
  })

/** The row that names the owner of a part: no sequence has this id. */
const ownerId = ""

const ownerOf = ({ owner }: OwnedPart): StoredSequence => ({
  id: ownerId,
  state: undefined,
  lastCall: owner,
  lastReply: undefined,
  expiresAt: never,
})

/**
 * Creates the table if it does not exist. If several processes create it at the same time, PostgreSQL lets only one
 * succeed. The others find the table when they retry.
 */
const createTable = (sql: SqlClient.SqlClient, table: string): Effect.Effect<unknown, SqlError> => {
  const create = (key: string, text: string) =>
    sql`CREATE TABLE IF NOT EXISTS ${sql(table)} (
      model ${sql.literal(key)} NOT NULL,
      part INTEGER NOT NULL,
      id ${sql.literal(key)} NOT NULL,
      state ${sql.literal(text)},
      last_call ${sql.literal(text)},
      last_reply ${sql.literal(text)},
      expires_at BIGINT NOT NULL,
      PRIMARY KEY (model, part, id)
    )`
  return sql
    .onDialectOrElse({
      mysql: () => create("VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "LONGTEXT"),
      orElse: () => create("TEXT", "TEXT"),
    })
    .pipe(Effect.retry({ times: 1 }))
}

const columns = (
  { model, part }: OwnedPart,
  { id, state, lastCall, lastReply, expiresAt }: StoredSequence,
): Record<string, unknown> => ({
  model,
  part,
  id,
  state: state ?? null,
  last_call: lastCall ?? null,
  last_reply: lastReply ?? null,
  expires_at: Math.min(Math.ceil(expiresAt), never),
})

const sequenceOf = ({ id, state, last_call, last_reply, expires_at }: Row): StoredSequence => ({
  id,
  state: state ?? undefined,
  lastCall: last_call ?? undefined,
  lastReply: last_reply ?? undefined,
  expiresAt: Number(expires_at),
})

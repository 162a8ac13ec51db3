import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { describe } from "vitest"
import * as MemoryStore from "./MemoryStore.ts"
import { SequenceStore, type StoredSequence } from "./SequenceStore.ts"
import { layer as sqlite } from "./Sqlite.fixture.ts"
import * as SqlStore from "./SqlStore.ts"

const sequence = (id: number, fields: Partial<StoredSequence> = {}): StoredSequence => ({
  id: `UINT64 ${id}`,
  state: `{"id":${id}}`,
  lastCall: "caller/1",
  lastReply: "AAECAw==",
  expiresAt: 60_000,
  ...fields,
})

const owned = { model: "sums", part: 7, owner: "one" }
const next = { ...owned, owner: "two" }

describe.each([
  ["memory", MemoryStore.layer],
  ["SQL", Layer.provide(SqlStore.layer(), sqlite(":memory:"))],
  ["SQL with a table of another name", Layer.provide(SqlStore.layer({ table: "others" }), sqlite(":memory:"))],
])("a store in %s", (_, layer) => {
  const test = (name: string, program: Effect.Effect<void, unknown, SequenceStore>) =>
    it.effect(name, () => program.pipe(Effect.provide(Layer.fresh(layer))))

  test(
    "gives the sequences of a part to its next owner",
    Effect.gen(function* () {
      const store = yield* SequenceStore
      expect(yield* store.take(owned)).toEqual([])
      const ended = sequence(2, { state: undefined, lastReply: undefined })
      const forever = sequence(3, { lastCall: undefined, expiresAt: Number.MAX_SAFE_INTEGER })
      yield* store.put(owned, [sequence(1), ended, forever])
      const taken = yield* store.take(next)
      expect(taken.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([sequence(1), ended, forever])
    }),
  )

  test(
    "keeps models and parts apart",
    Effect.gen(function* () {
      const store = yield* SequenceStore
      const others = [
        { ...owned, part: 8 },
        { ...owned, model: "others" },
      ]
      for (const part of [owned, ...others]) yield* store.take(part)
      yield* store.put(owned, [sequence(1)])
      for (const part of others) expect(yield* store.take(part)).toEqual([])
    }),
  )

  test(
    "replaces and removes sequences",
    Effect.gen(function* () {
      const store = yield* SequenceStore
      yield* store.take(owned)
      yield* store.put(owned, [sequence(1), sequence(2)])
      yield* store.put(owned, [sequence(1, { state: "{}" })])
      yield* store.remove(owned, ["UINT64 2", "UINT64 3"])
      expect(yield* store.take(next)).toEqual([sequence(1, { state: "{}" })])
    }),
  )

  test(
    "takes more sequences than a statement has parameters",
    Effect.gen(function* () {
      const store = yield* SequenceStore
      yield* store.take(owned)
      const many = Array.from({ length: 1201 }, (_, id) => sequence(id))
      yield* store.put(owned, many)
      expect(yield* store.take(owned)).toHaveLength(1201)
      yield* store.remove(
        owned,
        many.slice(1).map(({ id }) => id),
      )
      expect(yield* store.take(owned)).toEqual([sequence(0)])
    }),
  )

  test(
    "refuses an owner that another one has replaced, and changes nothing",
    Effect.gen(function* () {
      const store = yield* SequenceStore
      yield* store.take(owned)
      yield* store.put(owned, [sequence(1)])
      yield* store.take(next)
      expect(yield* Effect.flip(store.put(owned, [sequence(1, { state: "{}" })]))).toMatchObject({ _tag: "StoreTaken" })
      expect(yield* Effect.flip(store.remove(owned, ["UINT64 1"]))).toMatchObject({ _tag: "StoreTaken" })
      expect(yield* store.take(next)).toEqual([sequence(1)])
    }),
  )

  test(
    "keeps sequences that have expired for ten minutes",
    Effect.gen(function* () {
      const store = yield* SequenceStore
      yield* store.take(owned)
      yield* store.put(owned, [sequence(1, { expiresAt: 1000 }), sequence(2, { expiresAt: Infinity })])
      yield* TestClock.adjust("10 minutes")
      expect(yield* store.take(owned)).toHaveLength(2)
      yield* TestClock.adjust("1 second")
      expect((yield* store.take(next)).map(({ id }) => id)).toEqual(["UINT64 2"])
    }),
  )
})

it.effect("a store in SQL says what it cannot do", () =>
  Effect.gen(function* () {
    const built = Layer.build(Layer.provide(SqlStore.layer({ table: "sqlite_reserved" }), sqlite(":memory:")))
    const error = yield* Effect.flip(built)
    expect(error).toMatchObject({ _tag: "SequenceStoreError" })
    expect(error.message).toMatch(/^cannot create the table: /)
  }).pipe(Effect.scoped),
)

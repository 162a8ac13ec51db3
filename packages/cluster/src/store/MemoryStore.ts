/** Stored sequences in the memory of this process: for tests, and for a cluster of one process. */
import { Clock, Effect, Layer } from "effect"
import { expiredFor, type OwnedPart, SequenceStore, type StoredSequence, StoreTaken } from "./SequenceStore.ts"

interface StoredPart {
  owner: string
  readonly sequences: Map<string, StoredSequence>
}

/** Keeps sequences in the memory of this process: for tests, and for a cluster of one process. */
export const layer: Layer.Layer<SequenceStore> = Layer.effect(
  SequenceStore,
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const parts = new Map<string, StoredPart>()
    const write = ({ model, part, owner }: OwnedPart, change: (sequences: Map<string, StoredSequence>) => void) =>
      Effect.suspend(() => {
        const stored = parts.get(keyOf(model, part))
        if (stored?.owner !== owner) return new StoreTaken({ message: `part ${part} of '${model}' has another owner` })
        return Effect.sync(() => change(stored.sequences))
      })
    return SequenceStore.of({
      take: ({ model, part, owner }) =>
        Effect.sync(() => {
          const stored = parts.get(keyOf(model, part)) ?? { owner, sequences: new Map<string, StoredSequence>() }
          stored.owner = owner
          parts.set(keyOf(model, part), stored)
          const oldest = clock.currentTimeMillisUnsafe() - expiredFor
          for (const { id, expiresAt } of stored.sequences.values()) {
            if (expiresAt <= oldest) stored.sequences.delete(id)
          }
          return [...stored.sequences.values()]
        }),
      put: (owned, added) =>
        write(owned, (sequences) => {
          for (const sequence of added) sequences.set(sequence.id, sequence)
        }),
      remove: (owned, ids) =>
        write(owned, (sequences) => {
          for (const id of ids) sequences.delete(id)
        }),
    })
  }),
)

const keyOf = (model: string, part: number): string => `${part} ${model}`

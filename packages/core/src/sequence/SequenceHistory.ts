/**
 * The ended sequences of all models of a process, so that a model that was reloaded can tell why a sequence is over.
 * Bounded: the models that were loaded first are forgotten.
 */
import { Context } from "effect"
import { EndedSequences } from "./EndedSequences.ts"

/** Ended sequences of a model that are remembered, and models. */
const maxSequences = 10_000
const maxModels = 1000

export class EndedByModel {
  readonly #models = new Map<string, EndedSequences>()

  of(name: string, version: string): EndedSequences {
    const key = `${name}/${version}`
    const ended = this.#models.get(key) ?? new EndedSequences(maxSequences)
    this.#models.delete(key)
    this.#models.set(key, ended)
    const [first = key] = this.#models.size > maxModels ? this.#models.keys() : []
    if (first !== key) this.#models.delete(first)
    return ended
  }
}

/** Default: one for the process. */
export const SequenceHistory = Context.Reference<EndedByModel>("@nereid/core/SequenceHistory", {
  defaultValue: () => new EndedByModel(),
})

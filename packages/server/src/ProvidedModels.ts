/**
 * The check that a layer provides all models of a server. Its result is a text that names the missing model, for the
 * last line of the compiler's message, which otherwise compares the keys of two models. Types only.
 */
import type { Layer } from "effect"
import type { ModelKey } from "@nereid/core/internal/call/ModelClass"

interface Keyed {
  readonly Identifier: unknown
  readonly key: string
}

/** Unknown for a layer that provides all of the models, or for no layer. */
export type ProvidedModels<M extends ReadonlyArray<Keyed>, L extends Layer.Any | undefined> = [L] extends [Layer.Any]
  ? [Missing<M[number], Layer.Success<L>>] extends [never]
    ? unknown
    : Missing<M[number], Layer.Success<L>>
  : unknown

type Missing<Model extends Keyed, Provided> = Model extends Keyed
  ? [Model["Identifier"]] extends [Provided]
    ? never
    : `no layer provides model ${NameOf<Model["key"]>}`
  : never

type NameOf<Key extends string> = Key extends ModelKey<infer Name> ? Name : Key

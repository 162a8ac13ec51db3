/** The models beside one of a repository: what an ensemble is made of, and whom a script may ask. Not how they are loaded. */
import type { NamedCalls } from "@nereid/core/internal/call/NamedCalls"
import type { RegisteredModels } from "@nereid/core/Registry"

export interface Others extends Pick<RegisteredModels, "versions"> {
  /** Whether there is such a model, loaded or not. */
  readonly isKnown: (name: string) => boolean
  readonly calls: NamedCalls
}

/**
 * Model repository of a server. A repository in the layer of the models takes precedence over the one around the
 * server.
 */
import { Effect, type Scope } from "effect"
import {
  type Control,
  noRepository,
  type Open,
  type OpenRepository,
  type RepositoryError,
  type RepositoryServer,
} from "@nereid/core/internal/lifecycle/ModelRepository"

export class ServerRepository implements OpenRepository {
  #opened: OpenRepository = noRepository
  #by: Open | undefined

  /** Opens a repository in place of the current one, unless it is the current one. */
  open(repository: Open, server: RepositoryServer): Effect.Effect<void, RepositoryError, Scope.Scope> {
    if (repository === this.#by) return Effect.void
    return Effect.map(repository(server), (opened) => {
      this.#by = repository
      this.#opened = opened
    })
  }

  readonly begin: OpenRepository["begin"] = Effect.suspend(() => this.#opened.begin)

  readonly refresh: OpenRepository["refresh"] = Effect.suspend(() => this.#opened.refresh)

  readonly index: OpenRepository["index"] = () => this.#opened.index()

  readonly isLive: OpenRepository["isLive"] = () => this.#opened.isLive()

  readonly isReady: OpenRepository["isReady"] = () => this.#opened.isReady()

  get mode(): OpenRepository["mode"] {
    return this.#opened.mode
  }

  get control(): Control | undefined {
    return this.#opened.control
  }
}

/** A repository on disk, which is read whenever it is asked. It may be the directory of a single model. */
import { Effect } from "effect"
import { constUndefined, identity } from "effect/Function"
import { join, resolve } from "node:path"
import * as ModelDirectory from "./ModelDirectory.ts"
import type { RepositoryDirectory } from "./RepositoryDirectory.ts"

/** `singleModel`: name under which a directory is served that is a model itself. */
export const make = (directory: string, singleModel: string | undefined): RepositoryDirectory => {
  const path = resolve(directory)
  /** Whether the directory is a model itself, by the last look at it. */
  let isSingle = false
  const pathOf = (name: string) => (isSingle ? path : join(path, name))
  return {
    path,
    refresh: Effect.void,
    names:
      singleModel === undefined
        ? ModelDirectory.models(path)
        : Effect.flatMap(ModelDirectory.isSingle(path), (found) => {
            isSingle = found
            return found ? Effect.succeed([singleModel]) : ModelDirectory.models(path)
          }),
    // An unreadable directory is an error of its model only.
    stamp: (name) =>
      Effect.catch(
        Effect.suspend(() => ModelDirectory.stamp(pathOf(name))),
        ({ message }) => Effect.succeed(message),
      ),
    progress: constUndefined,
    open: (name, { configName }) =>
      Effect.suspend(() =>
        (isSingle ? ModelDirectory.readSingle : ModelDirectory.read)(name, pathOf(name), configName),
      ).pipe(Effect.map((found) => ({ directory: found, hold: Effect.void, shown: identity }))),
  }
}

/**
 * Temporary directory for model files that a client sends with a load request. It exists while a model uses it.
 * AbandonedDirectories.ts removes those of processes that were killed.
 *
 *   <temporary folder>/nereid-model-<random>/model/<files>
 *                                           /owner          (DirectoryOwner.ts)
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, Exit, Scope } from "effect"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, sep } from "node:path"
import * as DirectoryOwner from "./DirectoryOwner.ts"
import { LoadFailure } from "./LoadFailure.ts"

const prefix = "nereid-model-"

/** Whether `make` could have chosen the name. */
export const isName = (name: string): boolean =>
  name.startsWith(prefix) && /^[A-Za-z0-9]{6}$/.test(name.slice(prefix.length))

export interface OverrideDirectory {
  /** Directory of the model. */
  readonly path: string
  /** Keeps the directory while the scope is open. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
  /** Returns an error message with paths as in the request: below the directory of the model. */
  readonly shown: (message: string) => string
}

/** `files`: contents by their paths below the directory of the model. There at least until the scope closes. */
export const make = Effect.fnUntraced(function* (
  name: string,
  files: ReadonlyMap<string, Uint8Array>,
): Effect.fn.Return<OverrideDirectory, LoadFailure, Scope.Scope> {
  const root = yield* failing(() => mkdtemp(join(tmpdir(), prefix)))
  const path = join(root, "model")
  const shown = (message: string) => message.replaceAll(path + sep, "").replaceAll(path, ".")
  const mark = yield* Scope.make()
  let holders = 0
  const hold = Effect.acquireRelease(
    Effect.sync(() => void (holders += 1)),
    () => {
      holders -= 1
      if (holders > 0) return Effect.void
      const remove = Effect.promise(() => rm(root, { recursive: true, force: true }))
      return Effect.andThen(remove, Scope.close(mark, Exit.void))
    },
  )
  yield* hold
  yield* Scope.provide(DirectoryOwner.hold(root), mark)
  for (const [file, content] of files) {
    const target = join(path, file)
    if (!target.startsWith(path + sep)) {
      const message = `invalid file '${file}', which is not below the directory of model '${name}'`
      return yield* new LoadFailure({ message })
    }
    const write = failing(async () => {
      await mkdir(dirname(target), { recursive: true })
      await writeFile(target, content)
    })
    yield* Effect.mapError(write, ({ message }) => new LoadFailure({ message: shown(message) }))
  }
  return { path, hold, shown }
})

const failing = <A>(run: () => Promise<A>): Effect.Effect<A, LoadFailure> =>
  Effect.tryPromise({ try: run, catch: (error) => new LoadFailure({ message: errorMessage(error) }) })

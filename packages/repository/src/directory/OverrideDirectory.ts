/** Temporary directory for model files that a client sends with a load request. It exists while a model uses it. */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Scope } from "effect"
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, sep } from "node:path"
import { LoadFailure } from "./LoadFailure.ts"

export interface OverrideDirectory {
  readonly path: string
  /** Keeps the directory while the scope is open. */
  readonly hold: Effect.Effect<void, never, Scope.Scope>
}

/** `files`: contents by their paths below the directory of the model. There at least until the scope closes. */
export const make = Effect.fnUntraced(function* (
  name: string,
  files: ReadonlyMap<string, Uint8Array>,
): Effect.fn.Return<OverrideDirectory, LoadFailure, Scope.Scope> {
  const path = yield* failing(() => mkdtemp(join(tmpdir(), "nereid-model-")))
  let holders = 0
  const hold = Effect.acquireRelease(
    Effect.sync(() => void (holders += 1)),
    () => {
      holders -= 1
      return holders > 0 ? Effect.void : Effect.promise(() => rm(path, { recursive: true, force: true }))
    },
  )
  yield* hold
  for (const [file, content] of files) {
    const target = join(path, file)
    if (!target.startsWith(path + sep)) {
      const message = `invalid file '${file}', which is not below the directory of model '${name}'`
      return yield* new LoadFailure({ message })
    }
    yield* failing(async () => {
      await mkdir(dirname(target), { recursive: true })
      await writeFile(target, content)
    })
  }
  return { path, hold }
})

const failing = <A>(run: () => Promise<A>): Effect.Effect<A, LoadFailure> =>
  Effect.tryPromise({ try: run, catch: (error) => new LoadFailure({ message: errorMessage(error) }) })

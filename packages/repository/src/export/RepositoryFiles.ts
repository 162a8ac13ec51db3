/** Writes the files of an export. Existing files are overwritten only if requested. */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Data, Effect } from "effect"
import type { RepositoryFile } from "./RepositoryExport.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export class ExportError extends Data.TaggedError("ExportError")<{ readonly message: string }> {}

/** The paths of files that have changed: none where all was there before. */
export const write = (
  directory: string,
  files: ReadonlyArray<RepositoryFile>,
  overwrite = false,
): Effect.Effect<ReadonlyArray<string>, ExportError> =>
  Effect.gen(function* () {
    const states = yield* Effect.forEach(files, (file) =>
      Effect.map(state(directory, file), (state) => ({ file, state })),
    )
    const others = states.filter(({ state }) => state === "other").map(({ file }) => file.path)
    if (others.length > 0 && !overwrite) {
      const message = `${directory} contains files with these names and different contents (--overwrite replaces them): ${others.join(", ")}`
      return yield* new ExportError({ message })
    }
    const changed = states.filter(({ state }) => state !== "same").map(({ file }) => file)
    yield* Effect.forEach(changed, (file) => put(directory, file), { discard: true })
    return changed.map(({ path }) => path)
  })

const state = (directory: string, { path, content }: RepositoryFile) =>
  trying(join(directory, path), async () => {
    const existing = await readFile(join(directory, path)).catch((error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined
      throw error
    })
    if (existing === undefined) return "missing" as const
    const bytes = typeof content === "object" && "copyOf" in content ? await readFile(content.copyOf) : content
    return existing.equals(Buffer.from(bytes)) ? ("same" as const) : ("other" as const)
  })

const put = (directory: string, { path, content }: RepositoryFile) =>
  trying(join(directory, path), async () => {
    const target = join(directory, path)
    await mkdir(dirname(target), { recursive: true })
    if (typeof content === "object" && "copyOf" in content) await copyFile(content.copyOf, target)
    else await writeFile(target, content)
  })

const trying = <A>(path: string, run: () => Promise<A>): Effect.Effect<A, ExportError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => new ExportError({ message: `cannot write ${path}: ${errorMessage(error)}` }),
  })

/**
 * Reads a model's directory: the text of its configuration, and the files of its versions. ModelPlan.ts interprets
 * them.
 *
 *   <repository>/<model>/config.pbtxt            or configs/<configName>.pbtxt
 *                       /<label file>
 *                       /<version>/model.onnx
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Effect, type Result } from "effect"
import { isUtf8 } from "node:buffer"
import { type Dirent, readdirSync, statSync } from "node:fs"
import { readdir, readFile, stat } from "node:fs/promises"
import { join, sep } from "node:path"
import { LoadFailure } from "./LoadFailure.ts"

interface ConfigFile {
  readonly file: string
  readonly text: string
}

export interface ModelDirectory {
  readonly name: string
  readonly path: string
  /** Configuration; undefined without a file, a failure if the file is unreadable. */
  readonly config: Result.Result<ConfigFile | undefined, LoadFailure>
  /** The files and directories of each version, by their names. */
  readonly versions: ReadonlyMap<number, ReadonlySet<string>>
  /** Directories that are neither versions nor known directories of a model. */
  readonly unknown: ReadonlyArray<string>
}

/** Directories of a model that hold no version. */
const known = new Set(["configs", "warmup", "initial_state"])

/** `configName`: of a configuration that is taken where the model has it. */
export const read = Effect.fnUntraced(function* (name: string, path: string, configName?: string) {
  const entries = yield* list(path)
  const versions = new Map<number, ReadonlySet<string>>()
  const unknown: Array<string> = []
  for (const entry of entries) {
    if (known.has(entry.name) || entry.name.startsWith(".") || !(yield* isDirectory(path, entry))) continue
    const version = /^[1-9][0-9]*$/.test(entry.name) ? Number(entry.name) : NaN
    if (!Number.isSafeInteger(version)) unknown.push(entry.name)
    else versions.set(version, new Set((yield* list(join(path, entry.name))).map((file) => file.name)))
  }
  const config = yield* Effect.result(configOf(path, configName))
  return { name, path, config, versions, unknown } satisfies ModelDirectory
})

/**
 * Returns the names of the models in a repository, without hidden directories and node_modules.
 * @throws Error if the directory is unreadable
 */
export const models = (repository: string): ReadonlyArray<string> => {
  try {
    return readdirSync(repository, { withFileTypes: true })
      .filter(({ name }) => !name.startsWith(".") && name !== "node_modules")
      .filter(
        (entry) => entry.isDirectory() || (entry.isSymbolicLink() && isDirectoryNow(join(repository, entry.name))),
      )
      .map(({ name }) => name)
  } catch (error) {
    throw new Error(`cannot read ${repository}: ${errorMessage(error)}`, { cause: error })
  }
}

const isDirectoryNow = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/**
 * Resolves a file name of a configuration below `path`. Fails if it is outside, because clients may send
 * configurations.
 */
export const below = (path: string, name: string): Effect.Effect<string, LoadFailure> => {
  const file = join(path, name)
  if (file.startsWith(path + sep)) return Effect.succeed(file)
  return Effect.fail(new LoadFailure({ message: `file '${name}' is not below ${path}` }))
}

/** Lines of a file of the model, without those that are empty at the end. */
export const lines = Effect.fnUntraced(function* (path: string) {
  const content = yield* failing(path, () => readFile(path, "utf8"))
  return content.replace(/\s+$/, "").split(/\r?\n/)
})

/** Changes with any file of the directory, whether it is replaced or written to. */
export const stamp = Effect.fnUntraced(function* (path: string): Effect.fn.Return<string, LoadFailure> {
  const found = yield* failing(path, () => readdir(path, { recursive: true, withFileTypes: true }))
  const stamps = yield* Effect.forEach(
    found.filter((entry) => !entry.isDirectory()),
    ({ parentPath, name }) => {
      const file = join(parentPath, name)
      return Effect.map(
        failing(file, () => stat(file)),
        ({ ino, size, mtimeMs }) => `${file} ${ino} ${size} ${mtimeMs}`,
      )
    },
  )
  return stamps.toSorted().join("\n")
})

const list = (path: string) => failing(path, () => readdir(path, { withFileTypes: true }))

/** Whether an entry is a directory, or a link to one. */
const isDirectory = (path: string, entry: Dirent): Effect.Effect<boolean> => {
  if (!entry.isSymbolicLink()) return Effect.succeed(entry.isDirectory())
  return Effect.promise(() =>
    stat(join(path, entry.name)).then(
      (target) => target.isDirectory(),
      () => false,
    ),
  )
}

/** The most bytes of a configuration; real ones have a few thousand. */
const maxFileBytes = 4 * 1024 * 1024

const configOf = Effect.fnUntraced(function* (path: string, configName: string | undefined) {
  const named = configName === undefined ? undefined : yield* textOf(join(path, "configs", `${configName}.pbtxt`))
  return named ?? (yield* textOf(join(path, "config.pbtxt")))
})

const textOf = Effect.fnUntraced(function* (file: string): Effect.fn.Return<ConfigFile | undefined, LoadFailure> {
  const found = yield* Effect.promise(() => stat(file).catch(() => undefined))
  if (found === undefined || !found.isFile()) return undefined
  if (found.size > maxFileBytes) {
    return yield* new LoadFailure({
      message: `${file} has ${found.size} bytes, a configuration at most ${maxFileBytes}`,
    })
  }
  const bytes = yield* failing(file, () => readFile(file))
  // Other bytes would silently be other characters.
  if (!isUtf8(bytes))
    return yield* new LoadFailure({ message: `failed to read text proto from ${file}: it is not UTF-8` })
  return { file, text: bytes.toString("utf8") }
})

const failing = <A>(path: string, run: () => Promise<A>): Effect.Effect<A, LoadFailure> =>
  Effect.tryPromise({
    try: run,
    catch: (error) => new LoadFailure({ message: `cannot read ${path}: ${errorMessage(error)}` }),
  })

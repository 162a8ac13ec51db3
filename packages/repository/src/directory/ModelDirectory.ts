/**
 * Reads a model's directory: the text of its configuration, and the files of its versions. ModelPlan.ts interprets
 * them.
 *
 *   <repository>/<model>/config.pbtxt            or configs/<configName>.pbtxt
 *                       /<label file>
 *                       /<version>/model.onnx
 *
 * A repository of one model, without a directory for it, is a directory of a model itself. It may hold the model file
 * without a directory for its version:
 *
 *   <repository>/config.pbtxt, <version>/model.onnx    or    <repository>/<any name>.onnx
 */
import * as Files from "@nereid/onnx/internal/file/Files"
import { Effect, Result } from "effect"
import { isUtf8 } from "node:buffer"
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
  /** Each version, with the names of its files and directories, or a failure if its directory is unreadable. */
  readonly versions: ReadonlyMap<number, Result.Result<ReadonlySet<string>, LoadFailure>>
  /** Directory with the files of a version. */
  readonly folderOf: (version: number) => string
  /** Changes with any file of a version. */
  readonly stampOf: (version: number) => Effect.Effect<string>
  /** Directories that are neither versions nor known directories of a model. */
  readonly unknown: ReadonlyArray<string>
  /** Changes with any file that belongs to no version, apart from configurations. */
  readonly stamp: string
}

/** Directories of a model that hold no version. */
export const known: ReadonlySet<string> = new Set(["configs", "warmup", "initial_state", "__pycache__"])

/** `configName`: of a configuration that is taken where the model has it. */
export const read = Effect.fnUntraced(function* (name: string, path: string, configName?: string) {
  const versions = new Map<number, Result.Result<ReadonlySet<string>, LoadFailure>>()
  const unknown: Array<string> = []
  for (const entry of yield* directories(path)) {
    if (known.has(entry) || entry.startsWith(".")) continue
    const version = /^[1-9][0-9]*$/.test(entry) ? Number(entry) : NaN
    if (!Number.isSafeInteger(version)) unknown.push(entry)
    else versions.set(version, yield* Effect.result(names(join(path, entry))))
  }
  const config = yield* Effect.result(configOf(path, configName))
  const stamped = yield* Effect.catch(stamp(path), ({ message }) => Effect.succeed(message))
  const isOfModel = (line: string) => {
    const [entry = ""] = line.slice(path.length + 1).split(/[/\\ ]/, 1)
    return entry !== "configs" && entry !== configFile && !versions.has(Number(entry))
  }
  const files = stamped.split("\n").filter(isOfModel).join("\n")
  const folderOf = (version: number) => join(path, String(version))
  const stampOf = (version: number) => folderStamp(folderOf(version))
  return { name, path, config, versions, folderOf, stampOf, unknown, stamp: files } satisfies ModelDirectory
})

/** Whether a repository is itself the directory of a model. */
export const isSingle = (path: string): Effect.Effect<boolean, LoadFailure> =>
  Effect.map(Effect.mapError(Files.list(path), unreadable(path)), (entries) => {
    const shown = entries.filter(({ name }) => !name.startsWith("."))
    const isModelFile = ({ name, kind }: (typeof shown)[number]) =>
      kind !== "directory" && (name === configFile || name.endsWith(".onnx"))
    const folders = shown.filter(({ name, kind }) => kind === "directory" && !known.has(name))
    return shown.some(isModelFile) || (folders.length > 0 && folders.every(({ name }) => /^[1-9][0-9]*$/.test(name)))
  })

/** Reads a repository that is itself the directory of a model. Without versions, its only ONNX file is version 1. */
export const readSingle = Effect.fnUntraced(function* (
  name: string,
  path: string,
  configName?: string,
): Effect.fn.Return<ModelDirectory, LoadFailure> {
  const directory = yield* read(name, path, configName)
  if (directory.versions.size > 0) return directory
  const files = yield* names(path)
  const versions: ModelDirectory["versions"] = new Map([[1, Result.succeed(files)]])
  const bare = { ...directory, versions, folderOf: () => path, stampOf: () => folderStamp(path), stamp: "" }
  const { config } = directory
  if (Result.isFailure(config) || config.success !== undefined || files.has("model.onnx")) return bare
  const [file, ...others] = [...files].filter((entry) => entry.endsWith(".onnx"))
  if (file === undefined || others.length > 0) {
    const found = `${path} has ${others.length === 0 ? "no ONNX file" : `${others.length + 1} ONNX files`}`
    return { ...bare, config: Result.fail(new LoadFailure({ message: `${found}, expected one, or model.onnx` })) }
  }
  const text = `platform: "onnxruntime_onnx" default_model_filename: ${JSON.stringify(file)}`
  return { ...bare, config: Result.succeed({ file: join(path, configFile), text }) }
})

export const configFile = "config.pbtxt"

/** Returns the names of the files of all versions that are readable. */
export const fileNames = ({ versions }: ModelDirectory): ReadonlySet<string> =>
  new Set([...versions.values()].flatMap((names) => (Result.isSuccess(names) ? [...names.success] : [])))

/**
 * Returns the names of the models in a repository, without hidden directories and node_modules. A link that leads
 * nowhere is a model, so that the index has the reason why it is not there.
 */
export const models = (repository: string): Effect.Effect<ReadonlyArray<string>, LoadFailure> =>
  Effect.map(directories(repository), (found) =>
    found.filter((name) => !name.startsWith(".") && name !== "node_modules"),
  )

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
  const content = yield* contents(path, maxLabelBytes)
  return new TextDecoder().decode(content).replace(/\s+$/, "").split(/\r?\n/)
})

/** The contents of a regular file of at most `maxBytes`. */
export const contents = (path: string, maxBytes: number) =>
  Effect.mapError(Files.read(path, maxBytes), (problem) =>
    isAbsent(problem)
      ? new LoadFailure({ message: `failed to open text file for read ${path}: No such file or directory` })
      : unreadable(path)(problem),
  )

/** Changes with any file of the directory, whether it is replaced or written to. */
export const stamp = (path: string): Effect.Effect<string, LoadFailure> =>
  Effect.mapError(Files.stamp(path), unreadable(path))

const folderStamp = (path: string): Effect.Effect<string> =>
  Effect.catch(stamp(path), ({ message }) => Effect.succeed(message))

/** Directories, links to directories, and links that lead nowhere. */
const directories = Effect.fnUntraced(function* (path: string) {
  const entries = yield* Effect.mapError(Files.list(path), unreadable(path))
  // One by one, because the file system of each target may be another.
  const found = yield* Effect.forEach(
    entries,
    ({ name, kind }) => {
      if (kind !== "link") return Effect.succeed(kind === "directory" ? [name] : [])
      return Files.kind(join(path, name)).pipe(
        Effect.map((target) => (target === "directory" ? [name] : [])),
        Effect.catch(() => Effect.succeed([name])),
      )
    },
    { concurrency: "unbounded" },
  )
  return found.flat()
})

const names = (path: string): Effect.Effect<ReadonlySet<string>, LoadFailure> =>
  Files.list(path).pipe(
    Effect.map((entries) => new Set(entries.map(({ name }) => name))),
    Effect.mapError(unreadable(path)),
  )

/** Maximum bytes of a configuration; real ones have a few thousand. */
export const maxConfigBytes = 4 * 1024 * 1024

/** Maximum bytes of a file with labels, one per line. */
const maxLabelBytes = 64 * 1024 * 1024

const configOf = Effect.fnUntraced(function* (path: string, configName: string | undefined) {
  const named = configName === undefined ? undefined : yield* textOf(join(path, "configs", `${configName}.pbtxt`))
  return named ?? (yield* textOf(join(path, configFile)))
})

const textOf = Effect.fnUntraced(function* (file: string): Effect.fn.Return<ConfigFile | undefined, LoadFailure> {
  const read = yield* Effect.result(Files.read(file, maxConfigBytes))
  if (Result.isFailure(read)) {
    return isAbsent(read.failure) ? undefined : yield* unreadable(file)(read.failure)
  }
  const bytes = read.success
  // Other bytes would silently be other characters.
  if (!isUtf8(bytes))
    return yield* new LoadFailure({ message: `failed to read text proto from ${file}: it is not UTF-8` })
  return { file, text: new TextDecoder().decode(bytes) }
})

const isAbsent = ({ code }: Files.FileProblem): boolean => code === "ENOENT" || code === "ENOTDIR"

const unreadable =
  (path: string) =>
  ({ message }: Files.FileProblem): LoadFailure =>
    new LoadFailure({ message: `cannot read ${path}: ${message}` })

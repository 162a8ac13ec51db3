/**
 * All that is decided before anything of a model is loaded: its configuration, read, completed, checked and with its
 * defaults, the versions that are to be there, and the labels of its classes. Loading is ModelVersion.ts's business.
 */
import { create, equals, fromJson } from "@bufbuild/protobuf"
import { Effect, Result } from "effect"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import * as OnnxFile from "@nereid/onnx/OnnxFile"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import * as ConfigCheck from "./config/ConfigCheck.ts"
import * as ConfigCompletion from "./config/ConfigCompletion.ts"
import * as ConfigDefaults from "./config/ConfigDefaults.ts"
import * as ConfigText from "./config/ConfigText.ts"
import { LoadFailure, text } from "./LoadFailure.ts"
import * as ModelDirectory from "./ModelDirectory.ts"
import * as ModelWarmUp from "./ModelWarmUp.ts"
import * as Support from "./config/Support.ts"
import * as VersionPolicy from "./config/VersionPolicy.ts"

export interface PlanOptions {
  /** Whether what the configuration leaves out is read from the model file. */
  readonly autoComplete: boolean
  /** Of a model that can batch, and whose configuration does not say how many rows. */
  readonly defaultMaxBatchSize: number
  /** The numbers of the GPUs that there are. */
  readonly gpus: ReadonlyArray<number>
}

export interface PlannedVersion {
  readonly version: number
  /** The model file; the directory of a version that has none. */
  readonly file: string
  /** Changes with the files of this version. */
  readonly stamp: string
}

export interface ModelPlan {
  /** The directory of the model. */
  readonly path: string
  readonly config: ModelConfig
  /** At least one, the lowest first. */
  readonly versions: ReadonlyArray<PlannedVersion>
  /** By the name of the output. */
  readonly labels: ReadonlyMap<string, ReadonlyArray<string>>
  /** What each version is tried with before it takes requests. */
  readonly warmUp: ReadonlyArray<ModelWarmUp.ModelWarmUp>
  /** What the configuration asks for and is not done. */
  readonly warnings: ReadonlyArray<string>
}

export interface Override {
  /** A configuration as JSON, in place of the directory's. */
  readonly config: string
  /** Whether the directory has come from the caller, too, whom nobody trusts with code. */
  readonly isForeign: boolean
}

export const make = Effect.fnUntraced(function* (
  directory: ModelDirectory.ModelDirectory,
  { autoComplete, defaultMaxBatchSize, gpus }: PlanOptions,
  override?: Override,
): Effect.fn.Return<ModelPlan, LoadFailure> {
  const { name, path, unknown } = directory
  for (const other of unknown) {
    const rule = "versions are numbers above 0, without leading zeros"
    yield* Effect.logWarning(`Model '${name}': directory '${other}' is ignored, as ${rule}`)
  }
  const given = yield* Effect.fromResult(override === undefined ? written(directory) : overriding(override.config))
  yield* refuse(ConfigCheck.identityProblem(given, name))
  const files = new Set([...directory.versions.values()].flatMap((names) => [...names]))
  const identified = ConfigDefaults.identified(given, name, files)
  if (ConfigCheck.isUnspecified(identified)) {
    return yield* failure(`must specify 'platform' or 'backend' for '${name}'`)
  }
  if (override?.isForeign === true && identified.backend === "nereid") {
    return yield* failure("a script is loaded from a repository, never from files that come with a request")
  }
  const numbers = VersionPolicy.chosen(identified.versionPolicy, [...directory.versions.keys()])
  for (const version of VersionPolicy.named(identified.versionPolicy)) {
    if (directory.versions.has(version)) continue
    const problem = `version ${version} is specified for model '${name}', but the version directory is not present`
    yield* Effect.logWarning(problem)
  }
  const latest = numbers.at(-1)
  if (latest === undefined) {
    return yield* failure(`at least one version must be available under the version policy of model '${name}'`)
  }
  const ofLatest = Effect.mapError(({ message }: LoadFailure) => new LoadFailure({ message, version: latest }))
  yield* ofLatest(refuse(Support.backendProblem(identified)))
  const versions = yield* Effect.forEach(
    numbers,
    Effect.fnUntraced(function* (version) {
      const folder = join(path, String(version))
      // An ensemble has nothing in it.
      if (identified.platform === "ensemble") return { version, file: folder, stamp: "" }
      const file = yield* ModelDirectory.below(folder, identified.defaultModelFilename)
      return { version, file, stamp: yield* ModelDirectory.stamp(folder) }
    }),
  )
  const completion = Effect.flatMap(signature(join(path, String(latest), identified.defaultModelFilename)), (file) =>
    Effect.fromResult(Result.mapError(ConfigCompletion.complete(identified, file, defaultMaxBatchSize), failure)),
  )
  const completed = autoComplete && identified.backend === "onnxruntime" ? yield* ofLatest(completion) : identified
  const config = ConfigDefaults.filled(completed, gpus)
  yield* refuse(ConfigCheck.problem(config, gpus) ?? Support.problem(config))
  return {
    path,
    config,
    versions,
    labels: yield* labels(config, path),
    warmUp: yield* ModelWarmUp.all(config, path),
    warnings: Support.warnings(config),
  }
})

/** Whether the same would be loaded. */
export const isSame = (one: ModelPlan, other: ModelPlan): boolean =>
  isSameModel(one, other) &&
  hasSameInstances(one, other) &&
  one.versions.length === other.versions.length &&
  one.versions.every((version, index) => isSameVersion(version, other.versions[index]))

/** Whether a version that is the same in both would be loaded in the same way, but for its instances. */
export const isSameModel = (one: ModelPlan, other: ModelPlan): boolean =>
  equals(ModelConfigSchema, one.config, asLoadedBy(other.config, one.config)) &&
  JSON.stringify([...one.labels]) === JSON.stringify([...other.labels])

export const hasSameInstances = ({ config: one }: ModelPlan, { config: other }: ModelPlan): boolean =>
  equals(ModelConfigSchema, one, { ...one, instanceGroup: other.instanceGroup })

export const isSameVersion = (one: PlannedVersion, other: PlannedVersion | undefined): boolean =>
  one.version === other?.version && one.file === other.file && one.stamp === other.stamp

/** With what says nothing of how a version is loaded: which ones are, and in how many instances. */
const asLoadedBy = (config: ModelConfig, { versionPolicy, instanceGroup }: ModelConfig): ModelConfig => ({
  ...config,
  instanceGroup,
  ...(versionPolicy === undefined ? {} : { versionPolicy }),
})

/** The signature of a model file. */
export const signature = Effect.fnUntraced(function* (file: string) {
  const bytes = yield* Effect.tryPromise({
    try: (signal) => readFile(file, { signal }),
    catch: (error) => failure(isMissing(error) ? `unable to find '${file}'` : `cannot read ${file}: ${text(error)}`),
  })
  return yield* Effect.try({
    try: () => OnnxFile.signature(bytes),
    catch: (error) => failure(`${file} is not an ONNX model: ${text(error)}`),
  })
})

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT"

const failure = (message: string) => new LoadFailure({ message })

const refuse = (problem: string | undefined): Effect.Effect<void, LoadFailure> =>
  problem === undefined ? Effect.void : Effect.fail(failure(problem))

/** What the directory's own configuration says. */
export const written = ({ config }: ModelDirectory.ModelDirectory): Result.Result<ModelConfig, LoadFailure> =>
  Result.flatMap(config, (found) => {
    if (found === undefined) return Result.succeed(create(ModelConfigSchema))
    return Result.mapError(ConfigText.parse(found.text), ({ message, line, column }) =>
      failure(`failed to read text proto from ${found.file}:${line}:${column}: ${message}`),
    )
  })

const overriding = (json: string): Result.Result<ModelConfig, LoadFailure> =>
  Result.try({
    try: () => fromJson(ModelConfigSchema, JSON.parse(json)),
    catch: (error) => failure(`Invalid config override: ${text(error)}`),
  })

/** Of the classes of its outputs, by the names of these. */
export const labels = Effect.fnUntraced(function* ({ output }: ModelConfig, path: string) {
  const all = new Map<string, ReadonlyArray<string>>()
  for (const { name, labelFilename } of output) {
    if (labelFilename === "") continue
    all.set(name, yield* ModelDirectory.lines(yield* ModelDirectory.below(path, labelFilename)))
  }
  return all
})

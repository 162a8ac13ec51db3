/**
 * Plans a model before it is loaded: its configuration, and its versions, each with a plan (VersionPlan.ts).
 * VersionLoader.ts loads the versions.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { CurrentRateLimiter } from "@nereid/core/internal/limiter/RateLimiter"
import { create, equals } from "@bufbuild/protobuf"
import { Effect, Result } from "effect"
import { join } from "node:path"
import { type ModelConfig, ModelConfigSchema } from "@nereid/protocol/model_config"
import * as ConfigCheck from "../config/ConfigCheck.ts"
import * as ConfigDefaults from "../config/ConfigDefaults.ts"
import * as ConfigJson from "../config/ConfigJson.ts"
import * as ConfigText from "../config/ConfigText.ts"
import * as PythonBackend from "../config/PythonBackend.ts"
import { failure, type LoadFailure, refuse, unreadable } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as Support from "../config/Support.ts"
import * as BackendDirectory from "./BackendDirectory.ts"
import * as VersionPlan from "./VersionPlan.ts"
import * as VersionPolicy from "../config/VersionPolicy.ts"

export interface PlannedVersion extends VersionPlan.VersionFiles {
  /** Plan of the version, or the reason why it cannot be loaded. */
  readonly plan: Result.Result<VersionPlan.VersionPlan, LoadFailure>
}

export interface ModelPlan {
  /** Configuration with defaults, without values from model files. */
  readonly config: ModelConfig
  /** At least one, the lowest first. */
  readonly versions: ReadonlyArray<PlannedVersion>
  /** Warnings about unsupported settings of the configuration. */
  readonly warnings: ReadonlyArray<string>
  /** Changes with any file of the model that belongs to no version, apart from its configuration. */
  readonly stamp: string
}

export interface Override {
  /** A configuration as JSON, in place of the directory's. */
  readonly config: string
  /** Whether the directory is from a client too, which must not provide code. */
  readonly isForeign: boolean
}

export const make = Effect.fnUntraced(function* (
  directory: ModelDirectory.ModelDirectory,
  options: VersionPlan.PlanOptions,
  override?: Override,
): Effect.fn.Return<ModelPlan, LoadFailure> {
  const { name, path, unknown } = directory
  for (const other of unknown) {
    const rule = "a version is a number above 0 without leading zeros"
    yield* Effect.logWarning(`Model '${name}': directory '${other}' is ignored: ${rule}`)
  }
  const identified = yield* Effect.mapError(identify(directory, options, override), unreadable)
  const numbers = VersionPolicy.chosen(identified.versionPolicy, [...directory.versions.keys()])
  for (const version of VersionPolicy.named(identified.versionPolicy)) {
    if (directory.versions.has(version)) continue
    const problem = `version ${version} is specified for model '${name}', but the version directory is not present`
    yield* Effect.logWarning(problem)
  }
  if (numbers.length === 0) {
    return yield* failure(`at least one version must be available under the version policy of model '${name}'`)
  }
  const versions = yield* Effect.forEach(
    numbers,
    Effect.fnUntraced(function* (version) {
      const files = yield* filesOf(version, directory, identified, options.backendDirectory)
      const names = directory.versions.get(version) ?? Result.succeed(new Set<string>())
      const plan = yield* Effect.result(VersionPlan.make(files, names, path, identified, options))
      return { ...files, plan } satisfies PlannedVersion
    }),
  )
  const config = ConfigDefaults.filled(identified, options.gpus)
  const isLimited = (yield* CurrentRateLimiter) !== undefined
  return { config, versions, warnings: Support.warnings(config, isLimited), stamp: directory.stamp }
})

/** Returns the configuration with the model's name and backend, which are known before its versions are read. */
const identify = Effect.fnUntraced(function* (
  directory: ModelDirectory.ModelDirectory,
  { autoComplete, backendDirectory }: VersionPlan.PlanOptions,
  override: Override | undefined,
): Effect.fn.Return<ModelConfig, LoadFailure> {
  const { name, path } = directory
  const given = yield* Effect.fromResult(override === undefined ? written(directory) : overriding(override.config))
  const found = yield* checked(given, name, ModelDirectory.fileNames(directory))
  const identified = yield* BackendDirectory.identified(found, backendDirectory)
  if (override?.isForeign === true && (identified.backend === "nereid" || PythonBackend.runsPython(identified))) {
    return yield* failure("a script cannot be loaded from the files of a request")
  }
  const environment = environmentOf(identified)
  if (override !== undefined && environment !== undefined && environment !== environmentOf(own(directory))) {
    return yield* failure(`the configuration of a request cannot choose ${environmentParameter}`)
  }
  const hasNone = override === undefined && Result.isSuccess(directory.config) && directory.config.success === undefined
  // A script may be a model that declares its interface itself.
  if (hasNone && !autoComplete && identified.backend !== "nereid") {
    const file = join(path, "config.pbtxt")
    return yield* failure(`failed to open text file for read ${file}: No such file or directory`)
  }
  return identified
})

/** Completes the name and backend of a configuration, and checks all that does not depend on a version. */
export const checked = Effect.fnUntraced(function* (
  given: ModelConfig,
  name: string,
  files: ReadonlySet<string>,
): Effect.fn.Return<ModelConfig, LoadFailure> {
  const identified = ConfigDefaults.identified(given, name, files)
  // The messages have the name that the configuration gives the model.
  const named = { ...identified, name: given.name || name }
  yield* refuse(
    ConfigCheck.backendProblem(identified, name) ?? ConfigCheck.problem(named) ?? ConfigCheck.nameProblem(given, name),
  )
  return identified
})

/** Returns the files of a version. Models without a model file, such as ensembles, have only a directory. */
const filesOf = Effect.fnUntraced(function* (
  version: number,
  directory: ModelDirectory.ModelDirectory,
  config: ModelConfig,
  backendDirectory: string | undefined,
): Effect.fn.Return<VersionPlan.VersionFiles, LoadFailure> {
  const { platform, defaultModelFilename } = config
  const folder = directory.folderOf(version)
  if (platform === "ensemble") return { version, folder, file: folder, stamp: "" }
  if (PythonBackend.isShared(config)) {
    const file = BackendDirectory.fileOf(config, backendDirectory) ?? folder
    const stamp = `${yield* BackendDirectory.stampOf(file)}\n${yield* directory.stampOf(version)}`
    return { version, folder, file, stamp }
  }
  const file = defaultModelFilename === "" ? folder : yield* ModelDirectory.below(folder, defaultModelFilename)
  return { version, folder, file, stamp: `${defaultModelFilename}\n${yield* directory.stampOf(version)}` }
})

/** Whether both plans load the same model. */
export const isSame = (one: ModelPlan, other: ModelPlan): boolean =>
  isSameModel(one, other) &&
  hasSameInstances(one, other) &&
  one.versions.length === other.versions.length &&
  one.versions.every((version, index) => isSameVersion(version, other.versions[index]))

/** Whether a version in both plans would be loaded in the same way, except for its instances. */
export const isSameModel = (one: ModelPlan, other: ModelPlan): boolean =>
  one.stamp === other.stamp &&
  equals(ModelConfigSchema, one.config, asLoadedBy(other.config, one.config)) &&
  (!PythonBackend.runsInThreads(one.config) || hasSameInstances(one, other))

export const hasSameInstances = ({ config: one }: ModelPlan, { config: other }: ModelPlan): boolean =>
  equals(ModelConfigSchema, one, { ...one, instanceGroup: other.instanceGroup })

export const isSameVersion = (one: PlannedVersion, other: PlannedVersion | undefined): boolean =>
  one.version === other?.version && one.stamp === other.stamp

/**
 * Replaces the settings that do not affect how a version is loaded, version policy and instance groups, by those of
 * another configuration.
 */
const asLoadedBy = (config: ModelConfig, { versionPolicy, instanceGroup }: ModelConfig): ModelConfig => ({
  ...config,
  instanceGroup,
  ...(versionPolicy === undefined ? {} : { versionPolicy }),
})

/** Parses the configuration in the directory. */
export const written = ({ config }: ModelDirectory.ModelDirectory): Result.Result<ModelConfig, LoadFailure> =>
  Result.flatMap(config, (found) => {
    if (found === undefined) return Result.succeed(create(ModelConfigSchema))
    return Result.mapError(ConfigText.parse(found.text), ({ message, line, column }) =>
      failure(`failed to read text proto from ${found.file}:${line}:${column}: ${message}`),
    )
  })

/** The configuration in the directory, or an empty one. */
const own = (directory: ModelDirectory.ModelDirectory): ModelConfig =>
  Result.getOrElse(written(directory), () => create(ModelConfigSchema))

/** The parameter with the Python of a model, which is code. */
const environmentParameter = "EXECUTION_ENV_PATH"

const environmentOf = ({ parameters }: ModelConfig): string | undefined => parameters[environmentParameter]?.stringValue

const overriding = (json: string): Result.Result<ModelConfig, LoadFailure> =>
  Result.try({
    try: () => ConfigJson.parse(json),
    catch: (error) => failure(`Invalid config override: ${errorMessage(error)}`),
  })

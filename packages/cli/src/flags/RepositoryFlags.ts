/**
 * Flags of the model repository: its directories and URLs, and which models are loaded when. Without any, only the
 * models of the module are served.
 */
import type { Repository } from "@nereid/repository"
import * as StorageUrl from "@nereid/repository/internal/storage/store/StorageUrl"
import { Effect, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

/** Setting of `--backend-config`: an option of a backend, or the text of a setting without an effect. */
type BackendSetting =
  | { readonly defaultMaxBatchSize: number }
  | { readonly idleTimeout: `${number} seconds` }
  | { readonly python: { readonly callThreads: number } | { readonly inheritEnv: ReadonlyArray<string> } }
  | { readonly foreign: string }

const parseBackendSetting: FlagKind.Parse<BackendSetting> = (text) => {
  const [, backend = "", setting = "", value = ""] = /^(?:([^,=]*),)?([^,=]+)=(.*)$/.exec(text) ?? []
  if (backend === "python" || /^python(?:,|$)/.test(text)) return parsePythonSetting(text, setting, value)
  if (backend !== "" && backend !== "onnxruntime") return Result.succeed({ foreign: text })
  if (setting === "default-max-batch-size") {
    const parsed = FlagKind.parseInteger({ minimum: 0, maximum: 2 ** 31 - 1 })(value)
    return Result.map(parsed, (defaultMaxBatchSize) => ({ defaultMaxBatchSize }))
  }
  if (setting === "idle-timeout") {
    const parsed = FlagKind.parseInteger({ minimum: 0, maximum: 86_400 })(value)
    return Result.map(parsed, (seconds) => ({ idleTimeout: `${seconds} seconds` }))
  }
  return Result.fail("onnxruntime,default-max-batch-size=4 or onnxruntime,idle-timeout=60")
}

const parsePythonSetting = (text: string, setting: string, value: string): Result.Result<BackendSetting, string> => {
  if (setting === "thread-pool-size") {
    const parsed = FlagKind.parseInteger({ minimum: 1, maximum: 10_000 })(value)
    return Result.map(parsed, (callThreads) => ({ python: { callThreads } }))
  }
  if (setting === "inherited-variables") {
    const inheritEnv = value.split(",").filter((name) => name !== "")
    return Result.succeed({ python: { inheritEnv } })
  }
  // Triton's settings of its shared memory, and of a timeout that it does not use. No process has these here.
  const minimum = sharedMemorySettings.get(setting)
  if (minimum !== undefined) {
    const parsed = FlagKind.parseInteger({ minimum })(value)
    return Result.map(parsed, () => ({ foreign: text }))
  }
  if (setting === "shm-region-prefix-name") return Result.succeed({ foreign: text })
  return Result.fail("python,thread-pool-size=32 or python,inherited-variables=NAME,NAME")
}

/** Their minimum values. */
const sharedMemorySettings: ReadonlyMap<string, number> = new Map([
  ["shm-default-byte-size", 1024 * 1024],
  ["shm-growth-byte-size", 1024 * 1024],
  ["shm_message_queue_size", 1],
  ["stub-timeout-seconds", 1],
])

/** The settings of models in Python; each is a part of them. */
const pythonOptions = ({ backendConfig, backendDirectory }: Values): Pick<Repository.Options, "python"> => {
  const given: Array<Repository.PythonOptions> = backendConfig.flatMap((setting) =>
    "python" in setting ? [setting.python] : [],
  )
  if (backendDirectory !== undefined) given.push({ backendDirectory })
  return given.length === 0 ? {} : { python: Object.assign({}, ...given) }
}

export const flags = {
  directories: FlagKind.collected(
    "model-repository",
    {
      takes: "path|url",
      description:
        "Model repository: a directory with one subdirectory per model, or its URL (s3://, gs://, as://, hf://); repeatable",
      aliases: ["model-store"],
      // A signature follows the question mark.
      display: (value) => value.replace(/\?.*/s, "?…"),
    },
    (text) => (StorageUrl.isUrl(text) ? Result.map(StorageUrl.parse(text), () => text) : Result.succeed(text)),
  ),
  cacheDirectory: FlagKind.text(
    "model-cache-directory",
    "path",
    "Directory that keeps the files of repositories in object storage between starts",
    "~/.cache/nereid/models",
  ),
  cacheSize: FlagKind.integer(
    "model-cache-size",
    "Maximum size of the files in the model cache, in bytes",
    64 * 2 ** 30,
    { minimum: 1 },
  ),
  singleModel: FlagKind.text(
    "single-model",
    "name",
    "Name under which to serve a repository that is itself a model: an ONNX file, a config.pbtxt, or versions",
  ),
  control: FlagKind.choice(
    "model-control-mode",
    "Loading of repository models: none (all at start), explicit (on request), or poll (when files change)",
    "none",
    ["none", "explicit", "poll"],
  ),
  load: FlagKind.collected(
    "load-model",
    {
      takes: "name",
      description: "Model to load at start in explicit mode, or * for all models; repeatable",
    },
    Result.succeed,
  ),
  pollSeconds: FlagKind.integer(
    "repository-poll-secs",
    "Interval between scans of the repositories in poll mode, in seconds; 0 disables them",
    15,
    {
      minimum: 0,
    },
  ),
  configName: FlagKind.text(
    "model-config-name",
    "name",
    "Use configs/<name>.pbtxt instead of config.pbtxt in models that have it",
  ),
  // The only flag of tritonserver that takes no value.
  noAutoComplete: FlagKind.present(
    "disable-auto-complete-config",
    "Require complete configurations, without fields from model files; takes no value",
  ),
  strictConfig: FlagKind.optional(
    "strict-model-config",
    { takes: "boolean", description: "Same as --disable-auto-complete-config", fallback: "false" },
    FlagKind.parseBoolean,
  ),
  backendConfig: FlagKind.collected(
    "backend-config",
    {
      takes: "backend,setting=value",
      description:
        "Settings onnxruntime: default-max-batch-size, idle-timeout in seconds; python: thread-pool-size for calls of models, inherited-variables; repeatable",
    },
    parseBackendSetting,
  ),
  backendDirectory: FlagKind.text(
    "backend-directory",
    "path",
    'Directory of backends in Python: a model with backend "NAME" is run by NAME/model.py in it',
  ),
  partialModelLoad: FlagKind.boolean(
    "partial-model-load",
    "Serve the versions of a model that load although others fail; requests may reach an older version",
    false,
  ),
  namespaces: FlagKind.boolean(
    "model-namespacing",
    "Allow models with the same name in several repositories; ensembles prefer those of the same repository",
    false,
  ),
  exitOnError: FlagKind.boolean("exit-on-error", "Exit if a repository model fails to load at start", true),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Returns the given settings of backends that are not supported. */
export const ignored = ({ backendConfig }: Values): ReadonlyArray<string> =>
  backendConfig.flatMap((setting) => ("foreign" in setting ? [`--backend-config=${setting.foreign}`] : []))

/**
 * Returns the options of the repository; undefined without one. Fails if flags would have no effect without a
 * repository.
 */
export const options = (values: Values): Effect.Effect<Repository.Options | undefined, CliError.UserError> => {
  const { directories, control, load, pollSeconds, configName, backendConfig } = values
  const refuse = (message: string) => Effect.fail(new CliError.UserError({ cause: message }))
  const [first, ...others] = directories
  if (load.length > 0 && control !== "explicit") return refuse("--load-model requires --model-control-mode=explicit")
  if (load.length > 1 && load.includes("*")) {
    return refuse("Wildcard model name '*' must be the ONLY startup model if specified at all.")
  }
  if (first === undefined && values.singleModel !== undefined)
    return refuse("--single-model requires --model-repository")
  if (first === undefined) {
    const useless = control === "none" ? undefined : `--model-control-mode=${control}`
    return useless === undefined
      ? Effect.undefined
      : refuse(`${useless} requires --model-repository: the models of a module are always loaded at start`)
  }
  return Effect.succeed({
    directories: [first, ...others],
    control,
    load,
    pollInterval: `${pollSeconds} seconds`,
    ...(configName === undefined ? {} : { configName }),
    ...(values.singleModel === undefined ? {} : { singleModel: values.singleModel }),
    autoComplete: !values.noAutoComplete && values.strictConfig !== true,
    ...Object.assign({}, ...backendConfig.filter((setting) => !("foreign" in setting || "python" in setting))),
    ...pythonOptions(values),
    partialModelLoad: values.partialModelLoad,
    namespaces: values.namespaces,
    exitOnError: values.exitOnError,
    storage: {
      maxCacheBytes: values.cacheSize,
      ...(values.cacheDirectory === undefined ? {} : { cacheDirectory: values.cacheDirectory }),
    },
  })
}

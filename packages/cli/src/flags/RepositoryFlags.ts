/**
 * Flags of the model repository: its directories, and which models are loaded when. Without a directory, only the
 * models of the module are served.
 */
import type { Repository } from "@nereid/repository"
import { Effect, Result } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

/** Setting of `--backend-config`: the default batch size of the one backend, or the text of a foreign setting. */
type BackendSetting = { readonly defaultMaxBatchSize: number } | { readonly foreign: string }

const parseBackendSetting: FlagKind.Parse<BackendSetting> = (text) => {
  const [, backend = "", setting = "", value = ""] = /^(?:([^,=]*),)?([^,=]+)=(.*)$/.exec(text) ?? []
  if (backend !== "" && backend !== "onnxruntime") return Result.succeed({ foreign: text })
  if (setting === "default-max-batch-size") {
    const parsed = FlagKind.parseInteger({ minimum: 0, maximum: 2 ** 31 - 1 })(value)
    return Result.map(parsed, (defaultMaxBatchSize) => ({ defaultMaxBatchSize }))
  }
  return Result.fail("onnxruntime,default-max-batch-size=4, the only setting there is")
}

export const flags = {
  directories: FlagKind.collected(
    "model-repository",
    {
      takes: "path",
      description: "A directory of models, each in a directory of its own; any number of times",
      aliases: ["model-store"],
    },
    Result.succeed,
  ),
  control: FlagKind.choice(
    "model-control-mode",
    "Who decides which models of the repository are loaded: nobody (all, at the start), callers, or the directories themselves",
    "none",
    ["none", "explicit", "poll"],
  ),
  load: FlagKind.collected(
    "load-model",
    {
      takes: "name",
      description: "With explicit control, a model to load at the start, * alone for all; any number of times",
    },
    Result.succeed,
  ),
  pollSeconds: FlagKind.integer("repository-poll-secs", "With poll, seconds between two looks at the directories", 15, {
    minimum: 1,
  }),
  configName: FlagKind.text(
    "model-config-name",
    "name",
    "Models that have a configs/<name>.pbtxt are configured by it, others by their config.pbtxt",
  ),
  // The one flag of tritonserver that takes no value.
  noAutoComplete: FlagKind.present(
    "disable-auto-complete-config",
    "Configurations must be complete: nothing is read from model files",
  ),
  strictConfig: FlagKind.boolean("strict-model-config", "The same as --disable-auto-complete-config", false),
  backendConfig: FlagKind.collected(
    "backend-config",
    {
      takes: "onnxruntime,setting=value",
      description:
        "default-max-batch-size: rows of a batch, where a model can batch and its configuration does not say how many; settings of other backends have no effect",
    },
    parseBackendSetting,
  ),
  exitOnError: FlagKind.boolean("exit-on-error", "Whether a model that cannot be loaded ends the start", true),
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
  if (load.length > 0 && control !== "explicit") return refuse("--load-model needs --model-control-mode=explicit")
  if (load.length > 1 && load.includes("*")) {
    return refuse("Wildcard model name '*' must be the ONLY startup model if specified at all.")
  }
  if (first === undefined) {
    const useless = control === "none" ? undefined : `--model-control-mode=${control}`
    return useless === undefined
      ? Effect.undefined
      : refuse(`${useless} is of no use without --model-repository: models of a module are loaded at start, and stay`)
  }
  const cloud = directories.find((directory) => /^[a-z0-9]+:\/\//i.test(directory))
  if (cloud !== undefined) {
    return refuse(`the model repository '${cloud}' is no directory: cloud stores are not supported`)
  }
  return Effect.succeed({
    directories: [first, ...others],
    control,
    load,
    pollInterval: `${pollSeconds} seconds`,
    ...(configName === undefined ? {} : { configName }),
    autoComplete: !values.noAutoComplete && !values.strictConfig,
    ...Object.assign({}, ...backendConfig.filter((setting) => !("foreign" in setting))),
    exitOnError: values.exitOnError,
  })
}

/** The command line of `nereid`: parses, runs, and exits with 0 after a stop by SIGTERM or SIGINT. */
import * as NodeRuntime from "@effect/platform-node-shared/NodeRuntime"
import { teardown } from "@nereid/server/Server"
import { Console, Effect, Result, Stdio } from "effect"
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import * as Help from "./Help.ts"
import * as NodeServices from "./NodeServices.ts"
import { bench } from "./bench/bench.ts"
import { exportModels } from "./export/export.ts"
import { check } from "./check.ts"
import { generate } from "./generate/generate.ts"
import { init } from "./init.ts"
import { serve } from "./serve.ts"
import * as BenchFlags from "./flags/BenchFlags.ts"
import * as ExportFlags from "./flags/ExportFlags.ts"
import * as FlagPrefix from "./flags/FlagPrefix.ts"
import * as GenerateFlags from "./flags/GenerateFlags.ts"
import * as InitFlags from "./flags/InitFlags.ts"
import * as ServerFlags from "./flags/ServerFlags.ts"
import * as Variables from "./flags/Variables.ts"

// Without the wizard, which would prompt for a hundred flags, and the log level, which has separate flags.
const builtIns = [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions]

const command = Command.make("nereid").pipe(
  Command.withDescription(
    "Serve models over the v2 inference protocol, generate their contracts, and load-test servers",
  ),
  Command.withSubcommands([serve, generate, exportModels, bench, check, init]),
)

const run = Effect.gen(function* () {
  const args = yield* (yield* Stdio.Stdio).args
  // Only the flags of tritonserver have abbreviations.
  const completed = args[0] === "serve" ? FlagPrefix.complete(args, ServerFlags.flags) : Result.succeed(args)
  if (Result.isSuccess(completed))
    return yield* Command.runWith(command, { version: packageJson.version })(completed.success)
  yield* Console.error(`Error: ${completed.failure}`)
  yield* Effect.sync(() => (process.exitCode = 1))
})

run.pipe(
  Effect.provide([
    NodeServices.layer,
    CliConfig.layer({ builtIns }),
    Help.layer([ServerFlags.groups, GenerateFlags.groups, ExportFlags.groups, BenchFlags.groups, InitFlags.groups]),
    Variables.layer(ServerFlags.flags, process.env),
  ]),
  NodeRuntime.runMain({ teardown }),
)

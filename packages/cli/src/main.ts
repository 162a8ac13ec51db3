#!/usr/bin/env node
/** The command line, `nereid`: parses, runs, and exits with 0 after a stop by SIGTERM or SIGINT. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { teardown } from "@nereid/server/Server"
import { Effect } from "effect"
import { CliConfig, Command, GlobalFlag } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import * as Help from "./Help.ts"
import { bench } from "./bench/bench.ts"
import { exportModels } from "./export/export.ts"
import { check } from "./check.ts"
import { generate } from "./generate/generate.ts"
import { serve } from "./serve.ts"
import * as BenchFlags from "./flags/BenchFlags.ts"
import * as ExportFlags from "./flags/ExportFlags.ts"
import * as GenerateFlags from "./flags/GenerateFlags.ts"
import * as ServerFlags from "./flags/ServerFlags.ts"
import * as Variables from "./flags/Variables.ts"

// Without the wizard, which would prompt for a hundred flags, and the log level, which has separate flags.
const builtIns = [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions]

Command.make("nereid").pipe(
  Command.withDescription(
    "Serve models over the v2 inference protocol, write their contracts, and measure servers of it",
  ),
  Command.withSubcommands([serve, generate, exportModels, bench, check]),
  Command.run({ version: packageJson.version }),
  Effect.provide([
    NodeServices.layer,
    CliConfig.layer({ builtIns }),
    Help.layer([ServerFlags.groups, GenerateFlags.groups, ExportFlags.groups, BenchFlags.groups]),
    Variables.layer(ServerFlags.flags, process.env),
  ]),
  NodeRuntime.runMain({ teardown }),
)

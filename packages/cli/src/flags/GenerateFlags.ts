/** The flags of `nereid generate`, in the groups of its help. */
import { Result } from "effect"
import { Flag } from "effect/cli"
import * as ConnectionFlags from "./ConnectionFlags.ts"
import * as FlagKind from "./FlagKind.ts"
import type { Group } from "./ServerFlags.ts"

export const flags = {
  output: FlagKind.optional(
    "output",
    { takes: "path", aliases: ["o"], description: "Output file", fallback: "stdout" },
    Result.succeed,
  ),
  check: Flag.Boolean("check").pipe(
    Flag.withoutNegation,
    Flag.withDescription(
      "Compare the output file instead of writing it: print differences and exit with 1; takes no value",
    ),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  text: Flag.Boolean("text").pipe(
    Flag.withoutNegation,
    Flag.withDescription(
      "Declare TYPE_STRING tensors of one element as text (strings) instead of bytes; takes no value",
    ),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  models: FlagKind.collected(
    "model",
    {
      takes: "name",
      aliases: ["m"],
      description: "Model to read from the repository or server, or name of an .onnx model; repeatable",
      fallback: "all models",
    },
    Result.succeed,
  ),
  version: FlagKind.optional(
    "model-version",
    { takes: "integer", description: "Model version to read", fallback: "the latest served version" },
    FlagKind.parseInteger({ minimum: 1 }),
  ),
  maxBatchSize: FlagKind.optional(
    "max-batch-size",
    {
      takes: "integer",
      description: "Maximum rows per batch if the source does not define it; 0 for no batching",
      fallback: "4 for files that can batch, 0 for servers",
    },
    FlagKind.parseInteger({ minimum: 0, maximum: 2 ** 31 - 1 }),
  ),
  configName: FlagKind.text(
    "model-config-name",
    "name",
    "Read configs/<name>.pbtxt instead of config.pbtxt in models that have it",
  ),
  connection: ConnectionFlags.flags,
}

export const groups: ReadonlyArray<Group> = [
  { title: "Output", first: "output" },
  { title: "Source", first: "model" },
  { title: "Connection to a server", first: "header" },
]

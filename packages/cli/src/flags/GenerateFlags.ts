/** The flags of `nereid generate`, in the groups of its help. */
import { Result } from "effect"
import { Flag } from "effect/cli"
import * as ConnectionFlags from "./ConnectionFlags.ts"
import * as FlagKind from "./FlagKind.ts"
import type { Group } from "./ServerFlags.ts"

export const flags = {
  output: FlagKind.optional(
    "output",
    { takes: "path", aliases: ["o"], description: "The file to write; by default the text goes to stdout" },
    Result.succeed,
  ),
  check: Flag.Boolean("check").pipe(
    Flag.withoutNegation,
    Flag.withDescription(
      "Write nothing: exit with 1, and say every difference, where the file declares something else; takes no value",
    ),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  text: Flag.Boolean("text").pipe(
    Flag.withoutNegation,
    Flag.withDescription(
      "Declare TYPE_STRING tensors of one element as texts, strings in code, and not as bytes; takes no value",
    ),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  models: FlagKind.collected(
    "model",
    {
      takes: "name",
      aliases: ["m"],
      description:
        "A model of the repository or the server, any number of times; by default all. Of an .onnx file: its name",
    },
    Result.succeed,
  ),
  version: FlagKind.optionalInteger("model-version", "The version to read; by default the latest that is served", {
    minimum: 1,
  }),
  maxBatchSize: FlagKind.optionalInteger(
    "max-batch-size",
    "Rows of a batch, where the source does not say; by default 4 of files that can batch, and 0, no batches, of servers without configuration",
    { minimum: 0, maximum: 2 ** 31 - 1 },
  ),
  configName: FlagKind.text(
    "model-config-name",
    "name",
    "Models of a repository that have a configs/<name>.pbtxt are read by it",
  ),
  connection: ConnectionFlags.flags,
}

export const groups: ReadonlyArray<Group> = [
  { title: "What is written", first: "output" },
  { title: "What is read", first: "model" },
  { title: "How a server is asked", first: "header" },
]

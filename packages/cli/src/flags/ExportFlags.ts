/** The flags of `nereid export`. */
import { Result } from "effect"
import { Flag } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import type { Group } from "./ServerFlags.ts"

export const flags = {
  overwrite: Flag.Boolean("overwrite").pipe(
    Flag.withoutNegation,
    Flag.withDescription("Write over files that are there with other contents; takes no value"),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  exported: FlagKind.collected(
    "model",
    { takes: "name", aliases: ["m"], description: "A model to export, any number of times; by default all" },
    Result.succeed,
  ),
}

export const groups: ReadonlyArray<Group> = [{ title: "What is exported", first: "overwrite" }]

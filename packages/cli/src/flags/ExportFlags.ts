/** The flags of `nereid export`. */
import { Result } from "effect"
import { Flag } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"
import type { Group } from "./ServerFlags.ts"

export const flags = {
  overwrite: Flag.Boolean("overwrite").pipe(
    Flag.withoutNegation,
    Flag.withDescription("Overwrite existing files with different contents; takes no value"),
    Flag.atLeast(0),
    Flag.map((given) => given.at(-1) ?? false),
  ),
  exported: FlagKind.collected(
    "model",
    { takes: "name", aliases: ["m"], description: "Model to export; repeatable", fallback: "all models" },
    Result.succeed,
  ),
}

export const groups: ReadonlyArray<Group> = [{ title: "Output", first: "overwrite" }]

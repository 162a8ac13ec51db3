/**
 * Flags of Triton's response caches. Triton requires one of them for any model with a response cache. Here they have no
 * effect, but contradictions are refused in Triton's words.
 */
import { Effect } from "effect"
import { CliError, type Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

const collected = (name: string) =>
  FlagKind.collectedFrom(
    name,
    { takes: "any", description: "No effect: response caches are configured per model" },
    (given) => Effect.succeed({ text: given.text, source: FlagKind.sourceOf(name, given) }),
  )

export const flags = {
  config: collected("cache-config"),
  byteSize: collected("response-cache-byte-size"),
}

type Values = Command.Command.Config.Infer<typeof flags>

/** Returns the flags that were given, by name. */
export const ignored = ({ config, byteSize }: Values): ReadonlyArray<string> =>
  [config, byteSize].flatMap(([first]) => (first === undefined ? [] : [first.source]))

/** Fails if the flags contradict each other. The last of several settings of one cache wins. */
export const check = ({ config, byteSize }: Values): Effect.Effect<void, CliError.UserError> => {
  if (config.length > 0 && byteSize.length > 0) {
    const cause =
      "Incompatible flags --response-cache-byte-size and --cache-config both provided. Please provide one or the other."
    return Effect.fail(new CliError.UserError({ cause }))
  }
  const caches = new Set(config.map(({ text }) => text.split(",", 1)[0]))
  if (caches.size <= 1) return Effect.void
  const cause = "found multiple cache configurations, but only a single cache is currently supported"
  return Effect.fail(new CliError.UserError({ cause }))
}

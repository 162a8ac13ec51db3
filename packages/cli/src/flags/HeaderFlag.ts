/** A repeatable flag of a header to send, as `name:value`. Errors do not show the value, which may be a secret. */
import { Result } from "effect"
import * as FlagKind from "./FlagKind.ts"

/** `aliases` of a single letter have one dash. */
export const make = (name: string, description: string, aliases: ReadonlyArray<string> = []) =>
  FlagKind.collected(
    name,
    { takes: "name:value", aliases, description, display: (text) => text.replace(/:.*/, ":…") },
    (text) => {
      const [, header, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*([ -~\t]*)$/.exec(text) ?? []
      if (header === undefined || value === undefined) return Result.fail("name:value")
      return Result.succeed([header.toLowerCase(), value.trim()] as const)
    },
  )

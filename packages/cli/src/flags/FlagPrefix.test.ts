/** Abbreviated flags of `nereid serve`. */
import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import * as FlagPrefix from "./FlagPrefix.ts"
import * as ServerFlags from "./ServerFlags.ts"

const complete = (line: string) =>
  Result.match(FlagPrefix.complete(line.split(" "), ServerFlags.flags), {
    onFailure: (message) => message,
    onSuccess: (args) => args.join(" "),
  })

it.each([
  ["serve --log-warn=false", "serve --log-warning=false"],
  ["serve --model-repo /a --model-s=/b", "serve --model-repository /a --model-store=/b"],
  ["serve --model-store=/a", "serve --model-store=/a"],
  ["serve --log-f=a", "option '--log-f=a' is ambiguous; possibilities: '--log-format' '--log-file'"],
  // The second begins the name of another flag.
  ["serve --http-port=1 --rate-limit=off", "serve --http-port=1 --rate-limit=off"],
  ["serve --nosuch=1 -h", "serve --nosuch=1 -h"],
  ["serve models.ts -- --log-warn", "serve models.ts -- --log-warn"],
  ["serve --load-model=--log-warn", "serve --load-model=--log-warn"],
  ["serve --he", "serve --help"],
])("%s", (line, expected) => expect(complete(line)).toBe(expected))

/** Fixture that parses a command line and environment as `nereid serve` does, without a server. */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect } from "effect"
import { CliOutput, Command } from "effect/cli"
import * as NodeServices from "../NodeServices.ts"
import * as ServerFlags from "./ServerFlags.ts"
import * as Variables from "./Variables.ts"

interface Parsed {
  readonly options?: ServerOptions
  readonly values?: ServerFlags.Values
  readonly warnings?: ReadonlyArray<string>
  readonly errors?: ReadonlyArray<string>
}

export const parse = (
  args: ReadonlyArray<string> = [],
  environment: Readonly<Record<string, string>> = {},
): Effect.Effect<Parsed> => {
  let parsed: Parsed = {}
  const command = Command.make("serve", { flags: ServerFlags.flags }, ({ flags }) =>
    Variables.refuseUnknown.pipe(
      Effect.andThen(ServerFlags.options(flags, environment)),
      Effect.match({
        onSuccess: (options) => (parsed = { options, values: flags, warnings: ServerFlags.warnings(flags) }),
        onFailure: ({ message }) => (parsed = { errors: [message] }),
      }),
    ),
  )
  const presenter = CliOutput.layerPresenter({
    present: (event) =>
      Effect.sync(() => {
        if (event._tag === "InvalidInvocation") parsed = { errors: event.errors.map(({ message }) => message) }
      }),
  })
  return Command.runWith(command, { version: "0" })(args).pipe(
    Effect.ignore,
    Effect.provide([NodeServices.layer, presenter, Variables.layer(ServerFlags.flags, environment)]),
    Effect.map(() => parsed),
  )
}

/** `nereid init NAME`: creates a workspace, as `npm create nereid NAME` does. */
import { Console, Effect } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import * as InitFlags from "./flags/InitFlags.ts"

export const init = Command.make(
  "init",
  {
    name: Argument.String("name").pipe(
      Argument.withDescription(
        "Name of the directory to create, and scope of the packages in it; . for the current directory if it is empty",
      ),
    ),
    flags: InitFlags.flags,
  },
  Effect.fnUntraced(function* ({ name, flags: { packages } }) {
    // Other commands do not need it.
    const [Workspace, { WorkspaceError }] = yield* Effect.promise(() =>
      Promise.all([import("create-nereid/internal/Workspace"), import("create-nereid/internal/WorkspaceError")]),
    )
    const created = yield* Effect.try({
      try: () => Workspace.create({ name, parent: process.cwd(), packages }),
      catch: (error) => {
        if (error instanceof WorkspaceError) return new CliError.UserError({ cause: error })
        throw error
      },
    })
    yield* Console.log(created)
  }),
).pipe(Command.withDescription("Create a workspace with a typed model, its server, a client and their tests"))

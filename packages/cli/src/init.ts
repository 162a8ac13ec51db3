/** `nereid init NAME`: creates a workspace, as `npm create nereid NAME` does. */
import { Console, Effect } from "effect"
import { Argument, CliError, Command } from "effect/cli"
import * as Workspace from "create-nereid/internal/Workspace"
import { WorkspaceError } from "create-nereid/internal/WorkspaceError"
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
  ({ name, flags: { packages } }) =>
    Effect.try({
      try: () => Workspace.create({ name, parent: process.cwd(), packages }),
      catch: (error) => {
        if (error instanceof WorkspaceError) return new CliError.UserError({ cause: error })
        throw error
      },
    }).pipe(Effect.flatMap(Console.log)),
).pipe(Command.withDescription("Create a workspace with a typed model, its server, a client and their tests"))

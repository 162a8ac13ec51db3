/** `nereid check`: checks that this machine can run a server. Bug reports should include its output. */
import { Effect, Result } from "effect"
import { Command } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import * as FlagKind from "./flags/FlagKind.ts"

export const check = Command.make(
  "check",
  {
    json: FlagKind.present("json", "Print the report as one JSON document; takes no value"),
    repositories: FlagKind.collected(
      "model-repository",
      {
        takes: "path",
        description: "Model repository whose models in Python are checked: which Python each would use; repeatable",
        aliases: ["model-store"],
      },
      Result.succeed,
    ),
    backendDirectory: FlagKind.text(
      "backend-directory",
      "path",
      "Directory of backends in Python, as for nereid serve: models of the repositories may name them",
    ),
  },
  ({ json, repositories, backendDirectory }) =>
    Effect.promise(async () => {
      // Loads the client, which other commands do not need.
      const CheckReport = await import("./check/CheckReport.ts")
      await CheckReport.print(packageJson, json, { repositories, backendDirectory })
    }),
).pipe(
  Command.withDescription(
    "Check that this machine can run a server: Node, ONNX Runtime, Python, free ports, and a test model over HTTP and gRPC",
  ),
)

/** `nereid check`: checks that this machine can run a server. Bug reports should include its output. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import * as CheckReport from "./check/CheckReport.ts"
import * as FlagKind from "./flags/FlagKind.ts"

export const check = Command.make(
  "check",
  { json: FlagKind.present("json", "Print the report as one JSON document; takes no value") },
  ({ json }) => Effect.promise(() => CheckReport.print(packageJson, json)),
).pipe(
  Command.withDescription(
    "Check that this machine can run a server: Node, ONNX Runtime, free ports, and a test model over HTTP and gRPC",
  ),
)

/** `nereid check`: checks that this machine can run a server. Bug reports should include its output. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }
import * as FlagKind from "./flags/FlagKind.ts"
import * as Finding from "./check/Finding.ts"
import * as Loopback from "./check/Loopback.ts"
import * as Machine from "./check/Machine.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Timeout of each part, in milliseconds. */
const partTimeout = 20_000

/** Default ports of `nereid serve`, by flag. */
const ports = { "http-port": 8000, "grpc-port": 8001, "metrics-port": 8002 }

export const check = Command.make(
  "check",
  { json: FlagKind.present("json", "Report as one JSON document") },
  Effect.fnUntraced(function* ({ json }) {
    const found = [
      [Machine.node(process.versions.node, packageJson.engines.node), Machine.machine()],
      yield* attempt("ports", async () => [await Machine.ports(ports)]),
      yield* attempt("ONNX Runtime", async () => [await Machine.onnxRuntime()]),
      yield* attempt("server", () => Loopback.check(partTimeout / 2)),
    ].flat()
    const report = Finding.report(packageJson.version, found)
    yield* Console.log(json ? JSON.stringify(report, null, 2) : Finding.text(report))
    if (report.ok) return
    process.exitCode = 1
    // Exits even if a check hangs.
    setTimeout(() => process.exit(), 1000).unref()
  }),
).pipe(
  Command.withDescription(
    "Check that this machine has what a server needs: Node, ONNX Runtime, free ports, and a model that answers over HTTP and gRPC",
  ),
)

/** Runs a check. A rejection or a timeout is a failed finding. */
const attempt = (
  name: string,
  run: () => Promise<ReadonlyArray<Finding.Finding>>,
): Effect.Effect<ReadonlyArray<Finding.Finding>> =>
  Effect.tryPromise(run).pipe(
    Effect.timeout(partTimeout),
    Effect.catch((error) => {
      const cause = error._tag === "UnknownError" ? error.cause : error
      const message = errorMessage(cause)
      return Effect.succeed([{ name, status: "failed" as const, message }])
    }),
  )

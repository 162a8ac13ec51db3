/** `nereid bench`: load-tests one model of a v2 protocol server, and prints throughput and latency. */
import * as Address from "@nereid/bench/internal/target/Address"
import { Effect } from "effect"
import { CliError, Command } from "effect/cli"
import * as BenchFlags from "../flags/BenchFlags.ts"
import * as BenchLoadFlags from "../flags/BenchLoadFlags.ts"
import * as BenchRequestFlags from "../flags/BenchRequestFlags.ts"
import * as BenchTargetFlags from "../flags/BenchTargetFlags.ts"

export const bench = Command.make(
  "bench",
  { flags: BenchFlags.flags },
  Effect.fnUntraced(function* ({ flags }) {
    const target = yield* BenchTargetFlags.options(flags.target)
    const request = yield* BenchRequestFlags.options(flags.request)
    const load = yield* BenchLoadFlags.options(flags.load)
    if (load.deadline !== undefined && target.protocol === "grpc-stream") {
      const message = "--deadline and --open-loop require unary requests: leave out --streaming"
      return yield* new CliError.UserError({ cause: message })
    }
    yield* Effect.tryPromise({
      try: async () => {
        // Loads the load generator, which other commands do not need.
        const BenchmarkRun = await import("./BenchmarkRun.ts")
        return BenchmarkRun.run({ ...target, ...request }, load, flags.output)
      },
      catch: (error) => new CliError.UserError({ cause: Address.reason(error) }),
      // An interrupted benchmark is a failure, unlike a stopped server.
    }).pipe(Effect.onInterrupt(() => Effect.sync(() => process.exit(interrupted))))
  }),
).pipe(Command.withDescription("Load-test one model of a server"))

/** Exit code of a program that SIGINT stopped, as in shells. */
const interrupted = 130

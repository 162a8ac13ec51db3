/** Flags of `nereid bench`, in the groups of its help. Flags of perf_analyzer have the same meaning here. */
import { Result } from "effect"
import type { Group } from "./ServerFlags.ts"
import * as BenchLoadFlags from "./BenchLoadFlags.ts"
import * as BenchRequestFlags from "./BenchRequestFlags.ts"
import * as BenchTargetFlags from "./BenchTargetFlags.ts"
import * as FlagKind from "./FlagKind.ts"

export const flags = {
  target: BenchTargetFlags.flags,
  request: BenchRequestFlags.flags,
  load: BenchLoadFlags.flags,
  output: {
    json: FlagKind.text("json", "path", "A file for everything that was measured, every round of it"),
    svg: FlagKind.text("svg", "path", "A file for the curve of the levels: requests a second against latencies"),
    csv: FlagKind.optional(
      "csv",
      {
        takes: "path",
        aliases: ["latency-report-file", "f"],
        description: "A file for the table, its numbers in full",
      },
      Result.succeed,
    ),
  },
}

export const groups: ReadonlyArray<Group> = [
  { title: "Who is asked", first: "model" },
  { title: "What is sent", first: "batch-size" },
  { title: "How hard, and how long", first: "concurrency" },
  { title: "Results", first: "json" },
]

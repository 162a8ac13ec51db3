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
    json: FlagKind.text("json", "path", "JSON file for all results, including every round"),
    svg: FlagKind.text("svg", "path", "SVG file for a chart of latency against requests per second"),
    csv: FlagKind.optional(
      "csv",
      {
        takes: "path",
        aliases: ["latency-report-file", "f"],
        description: "CSV file for the results table, with unrounded numbers",
      },
      Result.succeed,
    ),
  },
}

export const groups: ReadonlyArray<Group> = [
  { title: "Target", first: "model" },
  { title: "Requests", first: "batch-size" },
  { title: "Load", first: "concurrency" },
  { title: "Results", first: "json" },
]

/** Where a process spent its time: the functions at the top of a CPU profile, by the time spent in themselves. */
import { readFileSync } from "node:fs"
import type { Profiler } from "node:inspector"
import { fileURLToPath } from "node:url"
import * as Table from "./Table.ts"

const rows = 20

const root = fileURLToPath(new URL("../../", import.meta.url))

/** Of the time in which the thread was not idle. */
export const table = (file: string): string => {
  const { nodes, samples = [], timeDeltas = [] }: Profiler.Profile = JSON.parse(readFileSync(file, "utf8"))
  const names = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const times = new Map<string, number>()
  let busy = 0
  let idle = 0
  samples.forEach((id, index) => {
    const frame = names.get(id)
    // Of a sample, the time until the next.
    const time = timeDeltas[index + 1] ?? 0
    if (frame === undefined || frame.functionName === "(idle)") {
      idle += time
      return
    }
    busy += time
    const key = `${frame.functionName || "(anonymous)"}\n${place(frame)}`
    times.set(key, (times.get(key) ?? 0) + time)
  })
  const top = [...times].toSorted(([, one], [, other]) => other - one).slice(0, rows)
  return Table.table(
    [
      ["% of busy", `busy ${percent(busy, busy + idle)} % of the time`, "where"],
      ["--:", "---", "---"],
    ],
    top.map(([key, time]) => [percent(time, busy), ...key.split("\n")]),
  )
}

const percent = (part: number, whole: number): string => ((100 * part) / whole).toFixed(1)

const place = ({ url, lineNumber }: { readonly url: string; readonly lineNumber: number }): string =>
  url === "" ? "" : `${url.replace("file://", "").replace(root, "")}:${lineNumber + 1}`

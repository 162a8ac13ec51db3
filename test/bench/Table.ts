/** The results as Markdown: the same text for the terminal and for docs/performance.md. */
import type { Comparison } from "./Comparison.ts"
import type { Saturation } from "./Saturation.ts"

/** One line per comparison. Pairs are `server / bare`, ratios the one divided by the other. */
export const comparisons = (rows: ReadonlyArray<Comparison>): string =>
  table([
    [
      "model",
      "protocol",
      "callers",
      "requests/s",
      "bare",
      "ratio",
      "p50 ms",
      "p99 ms",
      "CPU µs/request",
      "load busy %",
      "errors",
    ],
    ["---", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "--:"],
    ...rows.map(({ request, concurrency, server, bare, errors }) => [
      request.model,
      request.protocol,
      String(concurrency),
      server.perSecond.toFixed(0),
      bare.perSecond.toFixed(0),
      (server.perSecond / bare.perSecond).toFixed(2),
      pair(server.p50, bare.p50, 2),
      pair(server.p99, bare.p99, 2),
      pair(server.cpu, bare.cpu, 0),
      pair(100 * server.load, 100 * bare.load, 0),
      String(errors.length),
    ]),
  ])

const maxDelay = 20

export const saturation = ({
  clients,
  seconds,
  perSecond,
  delay,
  executions,
  inferences,
  errors,
}: Saturation): string =>
  [
    `\`digits\` saturated by ${clients} gRPC clients for ${seconds} s: ${perSecond.toFixed(0)} requests/s, ${errors.length} errors`,
    "",
    table([
      ["", "measured", "target", ""],
      ["---", "--:", "---", "---"],
      ["event-loop delay, p99", `${delay.toFixed(1)} ms`, `p99 < ${maxDelay} ms`, verdict(delay < maxDelay)],
      [
        "execution_count of inference_count",
        `${executions} of ${inferences}`,
        "execution_count < inference_count / 2",
        verdict(executions < inferences / 2),
      ],
      ["mean batch", (inferences / executions).toFixed(1), "", ""],
    ]),
  ].join("\n")

const verdict = (holds: boolean): string => (holds ? "OK" : "NOT OK")

const pair = (server: number, bare: number, digits: number): string =>
  `${server.toFixed(digits)} / ${bare.toFixed(digits)}`

/** Padded, so that it reads as a table in a terminal too. */
const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((cells) => cells[column]?.length ?? 0)))
  const line = (cells: ReadonlyArray<string>) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`
  return rows.map(line).join("\n")
}

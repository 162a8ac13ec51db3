/** The results as the terminal shows them. */
import type { Case, Result } from "./Case.ts"
import * as Table from "./Table.ts"

export interface Row {
  readonly of: Case
  readonly result: Result
  /** Cores that other programs kept busy meanwhile. */
  readonly taken: number
}

const head = [
  [
    "case",
    "what",
    "beside",
    "target",
    "reached",
    "",
    "Nereid / baseline",
    "CPU µs/request",
    "p50, p99, p99.9 ms",
    "busy %",
    "load busy %",
    "others",
    "errors",
  ],
  ["---", "---", "---", "---", "--:", "---", "---", "--:", "--:", "--:", "--:", "--:", "--:"],
] as const

export const cells = ({ of: { name, description, baseline, target }, result, taken }: Row): ReadonlyArray<string> => [
  name,
  description,
  baseline,
  target,
  result.reached,
  verdict(result.met),
  result.lines.join("; "),
  result.cpu,
  result.latency,
  result.busy,
  result.other,
  taken.toFixed(2),
  String(result.errors.length),
]

export const table = (rows: ReadonlyArray<ReadonlyArray<string>>): string => Table.table(head, rows)

/** One line for the terminal, at once. */
export const summary = ({ of: { target }, result, taken }: Row): string =>
  [
    `  ${result.reached} (target ${target}${result.met === false ? ", NOT REACHED" : ""})`,
    `${result.lines.join("; ")}; CPU µs ${result.cpu}; p50, p99, p99.9 ms ${result.latency}; busy % ${result.busy}; load busy % ${result.other}`,
    `others kept ${taken.toFixed(2)} cores busy; ${result.errors.length} errors`,
  ].join("\n  ")

/** Of a target, if there is one. */
export const verdict = (met: boolean | undefined): string => {
  if (met === undefined) return ""
  return met ? "OK" : "**not reached**"
}

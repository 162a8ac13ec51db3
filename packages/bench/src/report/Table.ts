/**
 * Formats summaries as lines of a table, one per level. The column widths are fixed, so lines can be printed as they
 * come.
 */
import * as Level from "../load/Level.ts"
import type { Summary } from "./Summary.ts"

export interface TableOptions {
  /** Whether requests are sent at a fixed rate. */
  readonly open: boolean
  /** Rows of a request. If not 1, the table also has rows per second. */
  readonly batchSize: number
  readonly percentages: ReadonlyArray<number>
  /** Whether the server provides its counters. */
  readonly server: boolean
  /** Whether requests have a deadline. Default false. */
  readonly deadline?: boolean
}

interface Column {
  readonly title: string
  readonly cell: (summary: Summary) => string
}

const columns = ({ open, batchSize, percentages, server, deadline }: TableOptions): ReadonlyArray<Column> => [
  {
    title: open ? "sent/s" : "concurrency",
    cell: ({ level }) => (Level.isOpen(level) ? rate(level.perSecond) : String(level.concurrency)),
  },
  ...(deadline === true
    ? goodputColumns
    : [{ title: "requests/s", cell: ({ perSecond }: Summary) => rate(perSecond) }]),
  ...(batchSize === 1 ? [] : [{ title: "rows/s", cell: ({ perSecond }: Summary) => rate(perSecond * batchSize) }]),
  ...percentages.map((percentage) => ({
    title: `p${percentage} ms`,
    cell: ({ percentiles, goodput }: Summary) =>
      milliseconds((goodput?.accepted ?? percentiles).get(percentage) ?? Number.NaN),
  })),
  deadline === true
    ? { title: "refusal ms", cell: ({ goodput }) => milliseconds(goodput?.refusal ?? Number.NaN) }
    : { title: "max ms", cell: ({ max }) => milliseconds(max) },
  { title: "errors", cell: ({ errors }) => String(errors) },
  ...(server
    ? [
        { title: "queue ms", cell: ({ server }: Summary) => milliseconds(server?.queue ?? Number.NaN) },
        { title: "compute ms", cell: ({ server }: Summary) => milliseconds(server?.compute ?? Number.NaN) },
        { title: "batch", cell: ({ server }: Summary) => (server === undefined ? "–" : server.meanBatch.toFixed(1)) },
      ]
    : []),
  { title: "load %", cell: ({ cpu }) => (100 * cpu).toFixed(0) },
]

const goodputColumns: ReadonlyArray<Column> = [
  { title: "capacity", cell: ({ goodput }) => rate(goodput?.overload?.capacity ?? Number.NaN) },
  { title: "in time/s", cell: ({ perSecond }) => rate(perSecond) },
  {
    title: "% of it",
    cell: ({ goodput, perSecond }) => {
      const share = (100 * perSecond) / (goodput?.overload?.capacity ?? Number.NaN)
      return Number.isNaN(share) ? "–" : share.toFixed(0)
    },
  },
  { title: "refused/s", cell: ({ goodput }) => rate(goodput?.refused ?? Number.NaN) },
  { title: "late/s", cell: ({ goodput }) => rate(goodput?.late ?? Number.NaN) },
]

/** Wide enough for any number there may be. */
const width = (title: string): number => Math.max(title.length, 8)

const line = (cells: ReadonlyArray<readonly [title: string, text: string]>): string =>
  cells.map(([title, text]) => text.padStart(width(title))).join("  ")

export const head = (options: TableOptions): string => {
  const titles = columns(options).map(({ title }) => title)
  return [
    line(titles.map((title) => [title, title])),
    line(titles.map((title) => [title, "-".repeat(width(title))])),
  ].join("\n")
}

export const row = (summary: Summary, options: TableOptions): string =>
  line(columns(options).map(({ title, cell }) => [title, cell(summary)]))

/** Formats the table as CSV with unrounded numbers: a line of titles, and a line per level. Unknown cells are empty. */
export const csv = (summaries: ReadonlyArray<Summary>, percentages: ReadonlyArray<number>): string => {
  const titles = [
    "concurrency",
    "sent/s",
    "requests/s",
    "mean ms",
    ...percentages.map((each) => `p${each} ms`),
    "max ms",
    "errors",
    "queue ms",
    "compute ms",
    "batch",
    "load %",
  ]
  const lines = summaries.map(({ level, perSecond, mean, percentiles, max, errors, server, cpu }) => [
    Level.isOpen(level) ? "" : level.concurrency,
    Level.isOpen(level) ? level.perSecond : "",
    perSecond,
    mean,
    ...percentages.map((percentage) => percentiles.get(percentage) ?? ""),
    max,
    errors,
    server?.queue ?? "",
    server?.compute ?? "",
    server?.meanBatch ?? "",
    100 * cpu,
  ])
  return [titles, ...lines].map((cells) => `${cells.join(",")}\n`).join("")
}

/** Four digits that count. */
export const milliseconds = (value: number): string => {
  if (!Number.isFinite(value)) return "–"
  return value.toFixed(value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0)
}

export const rate = (value: number): string =>
  Number.isNaN(value) ? "–" : value.toFixed(value < 10 ? 2 : value < 1000 ? 1 : 0)

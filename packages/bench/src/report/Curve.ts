/**
 * Draws a sweep as an SVG chart: throughput against latency, with a line for each percentile. The SVG is standalone,
 * and follows the reader's light or dark mode.
 */
import * as Axis from "./Axis.ts"
import * as Level from "../load/Level.ts"
import type { Summary } from "./Summary.ts"
import { milliseconds, rate } from "./Table.ts"

export interface CurveOptions {
  readonly title: string
  readonly subtitle: string
  readonly percentages: ReadonlyArray<number>
}

const [width, height] = [800, 480]
const plot = { left: 76, right: width - 76, top: 84, bottom: height - 62 }

/** Bytes of UTF-8 text. Levels without any good reply have no place in it. */
export const svg = (summaries: ReadonlyArray<Summary>, { title, subtitle, percentages }: CurveOptions): string => {
  const points = summaries.filter(({ requests }) => requests > 0)
  const latencies = points.flatMap(({ percentiles }) => percentages.map((each) => percentiles.get(each) ?? Number.NaN))
  const x = Axis.linear(Math.max(1e-3, ...points.map(({ perSecond }) => perSecond)))
  const y =
    points.length === 0 ? Axis.logarithmic(1, 10) : Axis.logarithmic(Math.min(...latencies), Math.max(...latencies))
  const left = (perSecond: number) => round(plot.left + x.at(perSecond) * (plot.right - plot.left))
  const top = (latency: number) => round(plot.bottom - y.at(latency) * (plot.bottom - plot.top))

  const grid = [
    ...y.ticks.map((tick) => {
      const at = top(tick)
      return `<path class="grid" d="M${plot.left} ${at}H${plot.right}"/><text class="tick" x="${plot.left - 10}" y="${at + 4}" text-anchor="end">${short(tick)}</text>`
    }),
    ...x.ticks.map((tick) => {
      const at = left(tick)
      return `<path class="grid" d="M${at} ${plot.top}V${plot.bottom}"/><text class="tick" x="${at}" y="${plot.bottom + 20}" text-anchor="middle">${short(tick)}</text>`
    }),
  ]
  const series = percentages.map((percentage, index) => {
    const color = `c${index % colors.length}`
    const places = points.map((summary) => ({
      summary,
      x: left(summary.perSecond),
      y: top(summary.percentiles.get(percentage) ?? Number.NaN),
    }))
    const line = `<path class="line ${color}" d="M${places.map((place) => `${place.x} ${place.y}`).join("L")}"/>`
    const dots = places.map(
      ({ summary, x, y }) =>
        `<circle class="dot ${color}${summary.errors > 0 ? " bad" : ""}" cx="${x}" cy="${y}" r="4"><title>${escape(words(summary, percentage))}</title></circle>`,
    )
    return { percentage, color, end: places.at(-1), drawn: places.length === 0 ? "" : line + dots.join("") }
  })
  const labels = spread(
    series.flatMap(({ percentage, color, end }) => (end === undefined ? [] : [{ percentage, color, ...end }])),
  )
  const names = labels.map(
    ({ percentage, color, x, y }) => `<text class="name ${color}" x="${x + 11}" y="${y + 4}">p${percentage}</text>`,
  )
  // Left of the highest line and above it there is nothing else: curves rise to the right.
  const levels = points.flatMap((summary) => {
    if (Level.isOpen(summary.level)) return []
    const highest = Math.max(...percentages.map((each) => summary.percentiles.get(each) ?? Number.NaN))
    const [x, y] = [left(summary.perSecond) - 6, top(highest) - 7]
    return [`<text class="level" x="${x}" y="${y}" text-anchor="end">${summary.level.concurrency}</text>`]
  })
  const notes = [
    ...(levels.length > 0 ? ["labels: requests in flight"] : []),
    ...(points.some(({ errors }) => errors > 0) ? ["hollow points: levels with errors"] : []),
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escape(title)}">
<style>${style}</style>
<rect class="page" width="${width}" height="${height}" rx="8"/>
<text class="title" x="${plot.left}" y="34">${escape(title)}</text>
<text class="note" x="${plot.left}" y="56">${escape(subtitle)}</text>
${grid.join("\n")}
<text class="axis" x="${plot.left}" y="${height - 18}">requests per second</text>
<text class="axis" x="${plot.left - 10}" y="${plot.top - 12}" text-anchor="end">ms</text>
<text class="note" x="${plot.right}" y="${height - 18}" text-anchor="end">${escape(notes.join("; "))}</text>
${series.map(({ drawn }) => drawn).join("\n")}
${levels.join("\n")}
${names.join("\n")}
</svg>
`
}

/**
 * Colours that are distinct for colour-blind readers, in light and dark mode: blue, orange, green, purple, sky, yellow.
 */
const colors: ReadonlyArray<readonly [light: string, dark: string]> = [
  ["#0b62a8", "#5eb1f2"],
  ["#c25a00", "#ff9d4d"],
  ["#00795a", "#3fcfa0"],
  ["#8d3f8f", "#d99bdb"],
  ["#3a7fa6", "#9bd3f0"],
  ["#8a7000", "#e8d24a"],
]

interface Mode {
  readonly page: string
  readonly ink: string
  readonly dim: string
  readonly grid: string
  readonly colors: ReadonlyArray<string>
}

const modes: { readonly [name in "light" | "dark"]: Mode } = {
  light: { page: "#ffffff", ink: "#1b1f24", dim: "#59636e", grid: "#e3e6ea", colors: colors.map(([light]) => light) },
  dark: { page: "#14181d", ink: "#e8ecf1", dim: "#9aa5b1", grid: "#2b323a", colors: colors.map(([, dark]) => dark) },
}

/** Without CSS variables, which many image viewers do not support. */
const paint = ({ page, ink, dim, grid, colors }: Mode): string =>
  [
    `.page,.bad{fill:${page}}.title{fill:${ink}}.note,.axis,.tick,.level{fill:${dim}}.grid{stroke:${grid}}`,
    `.dot,.name,.level{stroke:${page}}`,
    ...colors.map(
      (color, index) =>
        `.name.c${index},.dot.c${index}{fill:${color}}.line.c${index}{stroke:${color}}.bad.c${index}{fill:${page};stroke:${color}}`,
    ),
  ].join("")

const style = `
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:12px}
.title{font-size:18px;font-weight:600}
.name{font-size:13px;font-weight:600}
.level{font-size:11px}
.grid{stroke-width:1;fill:none}
.line{stroke-width:2.25;stroke-linejoin:round;stroke-linecap:round;fill:none}
.dot{stroke-width:1.5}
.name,.level{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}
${paint(modes.light)}
@media(prefers-color-scheme:dark){${paint(modes.dark)}}
`

const words = (summary: Summary, percentage: number): string => {
  const latency = milliseconds(summary.percentiles.get(percentage) ?? Number.NaN)
  const errors = summary.errors === 0 ? "" : `, ${summary.errors} errors`
  return `${Level.print(summary.level)}: ${rate(summary.perSecond)} requests/s, p${percentage} ${latency} ms${errors}`
}

/** Names that would lie over one another are moved. */
const spread = <A extends { readonly y: number }>(labels: ReadonlyArray<A>): ReadonlyArray<A> => {
  const spaced: Array<A> = []
  for (const label of labels.toSorted((one, other) => one.y - other.y)) {
    const above = spaced.at(-1)
    spaced.push(above === undefined ? label : { ...label, y: Math.max(label.y, above.y + 15) })
  }
  return spaced
}

const round = (value: number): number => Math.round(value * 10) / 10

/** 1.5k, 20M */
const short = (value: number): string => {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`
  return String(value)
}

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

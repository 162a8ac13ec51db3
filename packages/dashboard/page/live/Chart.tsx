/** Lines over time, by uPlot. Its last values are told in words as well, for those who do not see it. */
import { useEffect, useRef } from "preact/hooks"
import uPlot from "uplot"
import "uplot/dist/uPlot.min.css"
import type { Rows } from "./Series.ts"

export interface ChartProps {
  readonly title: string
  readonly lines: ReadonlyArray<Line>
  /** Seconds since the epoch. */
  readonly times: ReadonlyArray<number>
  readonly rows: Rows
  /** Text of a value. */
  readonly format: (value: number) => string
  /** Seconds that the chart shows. */
  readonly seconds: number
}

export interface Line {
  readonly label: string
  /** Custom property of the colour, such as `--accent`. */
  readonly colour: string
}

const height = 150

export const Chart = ({ title, lines, times, rows, format, seconds }: ChartProps) => {
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot>(undefined)
  const shownFormat = useRef(format)
  shownFormat.current = format
  const labels = lines.map(({ label }) => label).join("\n")
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const made = new uPlot(
      optionsOf(element, lines, (value) => shownFormat.current(value)),
      [[]],
      element,
    )
    chart.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }))
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      chart.current = undefined
    }
  }, [labels])
  useEffect(() => {
    const end = times.at(-1) ?? 0
    chart.current?.batch(() => {
      chart.current?.setData([[...times], ...rows.map((row) => [...row])], false)
      chart.current?.setScale("x", { min: end - seconds, max: end })
    })
  }, [times, rows, seconds, labels])
  const now = lines.map(({ label }, position) => ({ label, value: rows[position]?.at(-1) ?? null }))
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        <ul class="legend">
          {now.map(({ label, value }, position) => (
            <li key={label}>
              <Swatch colour={lines[position]?.colour ?? "--accent"} /> {label}{" "}
              <strong>{value === null ? "–" : format(value)}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={place} aria-hidden="true" />
    </figure>
  )
}

/** A square of a colour. */
export const Swatch = ({ colour }: { readonly colour: string }) => (
  <span class="swatch" aria-hidden="true" style={{ background: `var(${colour})` }} />
)

const optionsOf = (
  element: HTMLElement,
  lines: ReadonlyArray<Line>,
  format: (value: number) => string,
): uPlot.Options => {
  const axis: uPlot.Axis = {
    stroke: resolved(element, "--quiet"),
    grid: { stroke: resolved(element, "--line"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  }
  return {
    width: Math.max(1, element.clientWidth),
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toLocaleTimeString("en-GB")),
        space: 90,
        size: 28,
      },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => format(tick)) },
    ],
    series: [
      {},
      ...lines.map(({ label, colour: name }) => ({
        label,
        stroke: resolved(element, name),
        width: 1.5,
        spanGaps: false,
        points: { show: false },
      })),
    ],
  }
}

/**
 * The colour of a custom property, which a canvas needs as it is drawn: `light-dark()` is only resolved for a property
 * of an element.
 */
const resolved = (element: HTMLElement, name: string) => (): string => {
  const probe = document.createElement("span")
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

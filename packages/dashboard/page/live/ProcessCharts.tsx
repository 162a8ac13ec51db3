/** The process of the server over time. */
import type { LiveStep, ProcessStep } from "../../src/live/LiveStep.ts"
import { Chart, type Line } from "./Chart.tsx"
import { duration, number, percent, size } from "./Numbers.ts"
import { times } from "./Series.ts"

export interface ProcessChartsProps {
  readonly steps: ReadonlyArray<LiveStep>
  readonly seconds: number
}

interface Figure {
  readonly title: string
  readonly lines: ReadonlyArray<Line & { readonly of: (process: ProcessStep) => number }>
  readonly format: (value: number) => string
}

const figures: ReadonlyArray<Figure> = [
  {
    title: "Processor, 100 % for each core",
    lines: [{ label: "all threads", colour: "--accent", of: ({ cpu }) => cpu }],
    format: percent,
  },
  {
    title: "Memory",
    lines: [
      { label: "resident", colour: "--accent", of: ({ memory }) => memory },
      { label: "heap", colour: "--good", of: ({ heap }) => heap },
      { label: "held by callers", colour: "--warm", of: ({ held }) => held },
    ],
    format: size,
  },
  {
    title: "Delay of the event loop",
    lines: [
      { label: "p99", colour: "--warm", of: ({ delayP99 }) => delayP99 },
      { label: "longest", colour: "--bad", of: ({ delayMax }) => delayMax },
    ],
    format: duration,
  },
  {
    title: "Connections and requests in flight",
    lines: [
      { label: "connections", colour: "--accent", of: ({ connections }) => connections },
      { label: "in flight", colour: "--warm", of: ({ inFlight }) => inFlight },
    ],
    format: number,
  },
]

export const ProcessCharts = ({ steps, seconds }: ProcessChartsProps) => (
  <section aria-labelledby="process">
    <h2 id="process">Process</h2>
    <div class="columns">
      {figures.map(({ title, lines, format }) => (
        <Chart
          key={title}
          title={title}
          lines={lines}
          times={times(steps)}
          rows={lines.map(({ of }) => steps.map(({ process }) => of(process)))}
          format={format}
          seconds={seconds}
        />
      ))}
    </div>
  </section>
)

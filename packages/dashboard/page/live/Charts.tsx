/** Requests, latency, queue and instances over time. */
import type { LiveStep } from "../../src/live/LiveStep.ts"
import { Chart, type Line } from "./Chart.tsx"
import { duration, number } from "./Numbers.ts"
import { busy, latencies, queues, rates, type Subject, times } from "./Series.ts"

export interface ChartsProps {
  readonly steps: ReadonlyArray<LiveStep>
  readonly subject: Subject | undefined
  readonly seconds: number
}

const rateLines: ReadonlyArray<Line> = [
  { label: "succeeded", colour: "--accent" },
  { label: "failed", colour: "--bad" },
]
const latencyLines: ReadonlyArray<Line> = [
  { label: "p50", colour: "--good" },
  { label: "p95", colour: "--warm" },
  { label: "p99", colour: "--bad" },
]
const queueLines: ReadonlyArray<Line> = [{ label: "requests", colour: "--accent" }]
const ageLines: ReadonlyArray<Line> = [{ label: "oldest", colour: "--warm" }]
const busyLines: ReadonlyArray<Line> = [{ label: "busy", colour: "--compute" }]

export const Charts = ({ steps, subject, seconds }: ChartsProps) => {
  const common = { times: times(steps), seconds }
  const [depth = [], age = []] = queues(steps, subject)
  return (
    <section aria-labelledby="charts">
      <h2 id="charts">Over time</h2>
      <div class="columns">
        <Chart title="Requests per second" lines={rateLines} rows={rates(steps, subject)} format={number} {...common} />
        <Chart title="Latency" lines={latencyLines} rows={latencies(steps, subject)} format={duration} {...common} />
        <Chart title="Queue" lines={queueLines} rows={[depth]} format={number} {...common} />
        <Chart title="Age of the oldest request" lines={ageLines} rows={[age]} format={duration} {...common} />
        <Chart title="Busy instances" lines={busyLines} rows={busy(steps, subject)} format={number} {...common} />
      </div>
    </section>
  )
}

/** The figures of the whole window: requests, errors by reason, latency, time of a request in its parts, batches. */
import type { LiveStep } from "../../src/live/LiveStep.ts"
import { BatchSizes } from "./BatchSizes.tsx"
import { duration, number, percent } from "./Numbers.ts"
import { PartsBar } from "./PartsBar.tsx"
import { type Subject, type Totals, totals } from "./Series.ts"

export interface WindowSumsProps {
  readonly steps: ReadonlyArray<LiveStep>
  readonly subject: Subject | undefined
}

export const WindowSums = ({ steps, subject }: WindowSumsProps) => {
  const sums = totals(steps, subject)
  return (
    <section aria-labelledby="window">
      <h2 id="window">In this time</h2>
      <dl class="facts">
        {factsOf(sums).map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div class="columns">
        <PartsBar parts={sums.parts} />
        <BatchSizes batches={sums.batches} />
      </div>
    </section>
  )
}

const factsOf = (sums: Totals): ReadonlyArray<readonly [string, string]> => {
  const { requests, perSecond, failures, reasons, rows, executions, hits, misses, sequences } = sums
  const [p50, p95, p99] = sums.quantiles
  const why = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(", ")
  return [
    ["Requests", `${requests.toLocaleString("en")}, ${number(perSecond)} per second`],
    ["Errors", failures === 0 ? "none" : `${failures.toLocaleString("en")}: ${why}`],
    ["Latency", `p50 ${duration(p50)}, p95 ${duration(p95)}, p99 ${duration(p99)}`],
    [
      "Batches",
      executions === 0 ? "none" : `${executions.toLocaleString("en")} of ${number(rows / executions)} rows on average`,
    ],
    ...(hits + misses === 0 ? [] : [["Cache hits", percent(hits / (hits + misses))] as const]),
    ...(sequences === 0 ? [] : [["Sequences", number(sequences)] as const]),
  ]
}

/** Executed batches by size, as a histogram. */
import { number } from "./Numbers.ts"
import type { Totals } from "./Series.ts"

/** Bars that have room. More sizes share bars. */
const maxBars = 32

export const BatchSizes = ({ batches }: { readonly batches: Totals["batches"] }) => {
  const bars = barsOf(batches)
  const highest = Math.max(1, ...bars.map(({ count }) => count))
  return (
    <figure class="chart">
      <figcaption>
        <h3>Batches by rows</h3>
      </figcaption>
      {bars.length === 0 ? (
        <p class="quiet">No batches.</p>
      ) : (
        <ol class="bars">
          {bars.map(({ label, count }) => (
            <li key={label}>
              <span class="count">{number(count)}</span>
              <span
                class="bar-fill"
                aria-hidden="true"
                style={{ height: `${Math.max(2, (count / highest) * 80)}px` }}
              />
              <span class="label">
                <span class="hidden">batches of </span>
                {label}
              </span>
            </li>
          ))}
        </ol>
      )}
    </figure>
  )
}

interface Bar {
  readonly label: string
  readonly count: number
}

const barsOf = (batches: Totals["batches"]): ReadonlyArray<Bar> => {
  const width = Math.ceil(batches.length / maxBars)
  const bars: Array<Bar> = []
  for (let from = 0; from < batches.length; from += width) {
    const part = batches.slice(from, from + width)
    const [first = 0, last = 0] = [part[0]?.[0], part.at(-1)?.[0]]
    const count = part.reduce((sum, [, executions]) => sum + executions, 0)
    bars.push({ label: first === last ? String(first) : `${first}–${last}`, count })
  }
  return bars
}

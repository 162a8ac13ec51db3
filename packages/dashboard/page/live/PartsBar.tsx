/** The mean time of a request in queue, input, compute and output, as a stacked bar. */
import { Swatch } from "./Chart.tsx"
import { duration } from "./Numbers.ts"

const names = ["queue", "input", "compute", "output"] as const

export interface PartsBarProps {
  /** Microseconds. */
  readonly parts: readonly [number, number, number, number]
}

export const PartsBar = ({ parts }: PartsBarProps) => {
  const whole = parts.reduce((sum, part) => sum + part, 0)
  return (
    <figure class="chart">
      <figcaption>
        <h3>Mean time of a request</h3>
        <ul class="legend">
          {names.map((name, position) => (
            <li key={name}>
              <Swatch colour={`--${name}`} /> {name} <strong>{duration((parts[position] ?? 0) / 1000)}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="stack" aria-hidden="true">
        {whole > 0 &&
          names.map((name, position) => (
            <span
              key={name}
              style={{ background: `var(--${name})`, width: `${((parts[position] ?? 0) / whole) * 100}%` }}
            />
          ))}
      </div>
    </figure>
  )
}

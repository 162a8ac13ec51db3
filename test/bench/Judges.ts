/** Lines of the table from comparisons: the figure that the target of a case applies to, and whether it is met. */
import type { Result } from "./Case.ts"
import type { Comparison, Figures } from "./Comparison.ts"

export const pair = (nereid: number, baseline: number, digits: number): string =>
  `${nereid.toFixed(digits)} / ${baseline.toFixed(digits)}`

const percentiles = ({ p50, p99, p999 }: Figures): string =>
  [p50, p99, p999].map((millis) => (millis < 10 ? millis.toFixed(2) : millis.toFixed(0))).join(", ")

export const pairs = ({ nereid, baseline, errors, notes }: Comparison) => ({
  cpu: pair(nereid.cpu, baseline.cpu, nereid.cpu < 100 ? 1 : 0),
  latency: `${percentiles(nereid)} / ${percentiles(baseline)}`,
  busy: pair(100 * nereid.busy, 100 * baseline.busy, 0),
  other: pair(100 * nereid.other, 100 * baseline.other, 0),
  errors,
  notes,
})

/** How many times the baseline's rate ours is. */
export const rate =
  (min?: number) =>
  (comparison: Comparison): Result => {
    const { nereid, baseline } = comparison
    const ratio = nereid.perSecond / baseline.perSecond
    return {
      ...pairs(comparison),
      lines: [`${pair(nereid.perSecond, baseline.perSecond, nereid.perSecond < 1000 ? 1 : 0)} /s`],
      reached: ratio.toFixed(2),
      met: min === undefined ? undefined : ratio >= min,
    }
  }

/** By how many microseconds our median is longer. */
export const delay =
  (max?: number) =>
  (comparison: Comparison): Result => {
    const { nereid, baseline } = comparison
    const micros = (figures: Figures) => figures.p50 * 1000
    const added = micros(nereid) - micros(baseline)
    return {
      ...pairs(comparison),
      lines: [`${pair(micros(nereid), micros(baseline), 0)} µs`],
      reached: `${added < 0 ? "" : "+"}${added.toFixed(0)} µs`,
      met: max === undefined ? undefined : added <= max,
    }
  }

/** How many times the baseline's CPU time ours is. */
export const cost =
  (max: number) =>
  (comparison: Comparison): Result => {
    const ratio = comparison.nereid.cpu / comparison.baseline.cpu
    return { ...rate()(comparison), reached: ratio.toFixed(2), met: ratio <= max }
  }

/** By how many hundredths of a core the measured process was busier. */
export const occupation =
  (max: number) =>
  (comparison: Comparison): Result => {
    const { nereid, baseline } = comparison
    const added = 100 * (nereid.busy - baseline.busy)
    return {
      ...pairs(comparison),
      lines: [`${pair(100 * nereid.busy, 100 * baseline.busy, 1)} % of a core`],
      reached: `${added < 0 ? "" : "+"}${added.toFixed(1)} %`,
      met: added <= max,
    }
  }

export type Judge = (comparison: Comparison) => Result

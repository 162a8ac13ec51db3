/** Axis of a chart: positions of values, and the values with labels. */
export interface Axis {
  /** From 0 at the beginning to 1 at the end. */
  readonly at: (value: number) => number
  readonly ticks: ReadonlyArray<number>
}

/** Linear axis from 0 to the first tick that is at least `max`. */
export const linear = (max: number): Axis => {
  const rough = max / 6
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = power * (steps.find((each) => each * power >= rough) ?? 10)
  const count = Math.max(1, Math.ceil(max / step - 1e-9))
  return {
    at: (value) => value / (count * step),
    ticks: Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12))),
  }
}

/** Logarithmic axis from the last tick that is at most `min` to the first that is at least `max`. */
export const logarithmic = (min: number, max: number): Axis => {
  const all: Array<number> = []
  for (let power = Math.floor(Math.log10(min)) - 1; power <= Math.ceil(Math.log10(max)) + 1; power++) {
    for (const each of [1, 2, 5]) all.push(Number(`${each}e${power}`))
  }
  const from = all.findLastIndex((tick) => tick <= min * (1 + 1e-9))
  const to = all.findIndex((tick) => tick >= max * (1 - 1e-9))
  const ticks = all.slice(from, Math.max(to, from + 1) + 1)
  const [first = 1, last = 10] = [ticks[0], ticks.at(-1)]
  // Over several powers of ten there are too many to be read.
  const labelled = ticks.length > 10 ? ticks.filter((tick) => /^1(0*|e.*)$|^0\.0*1$/.test(String(tick))) : ticks
  return { at: (value) => Math.log(value / first) / Math.log(last / first), ticks: labelled }
}

const steps = [1, 2, 2.5, 5]

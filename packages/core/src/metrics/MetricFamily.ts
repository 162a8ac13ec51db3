/**
 * A metric that a model's code declares: its name, kind and labels, and its series, which are bounded. Data and checks
 * only; MetricSink.ts stores the series, and HandlerMetrics.ts is the API for handlers.
 */

/** Values of each label: a list of those there are, or the number of different ones that there may be. */
export interface LabelValues {
  readonly [label: string]: ReadonlyArray<string> | number
}

/** As plain data: it may come from a worker thread. */
export interface FamilySpec {
  readonly kind: "counter" | "gauge" | "histogram"
  readonly name: string
  readonly description: string
  readonly labels: LabelValues
  /** Of a histogram's buckets, ascending. */
  readonly boundaries: ReadonlyArray<number>
}

/** Series of one metric of one model. */
const maxSeries = 1000

/** Label value that replaces further values beyond the maximum. */
export const other = "other"

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const labelName = /^[a-zA-Z_][a-zA-Z0-9_]*$/

/** Added to every series, or Prometheus' own. */
const reserved = new Set(["model", "version", "le", "quantile"])

/**
 * `reservedLabels`: names that no label may have.
 * @throws TypeError if Prometheus does not allow a name, or if there may be too many series
 */
export const check = (
  { name, labels, boundaries, kind }: FamilySpec,
  reservedLabels: ReadonlySet<string> = reserved,
): void => {
  const wrong = (text: string) => new TypeError(`Metric ${JSON.stringify(name)}: ${text}.`)
  if (!metricName.test(name))
    throw wrong("a name consists of letters, digits, _ and :, and does not begin with a digit")
  if (name.startsWith("nv_")) throw wrong("the prefix nv_ is reserved for the server")
  let series = 1
  for (const [label, values] of Object.entries(labels)) {
    if (!labelName.test(label) || label.startsWith("__")) {
      throw wrong(
        `${JSON.stringify(label)} is not a valid label: a label consists of letters, digits and _, and does not begin with a digit`,
      )
    }
    if (reservedLabels.has(label)) throw wrong(`the label ${label} is reserved`)
    const count = typeof values === "number" ? values : values.length
    if (!Number.isSafeInteger(count) || count < 1)
      throw wrong(`the label ${label} must have at least 1 value, got ${count}`)
    series *= typeof values === "number" ? count + 1 : count
  }
  if (series > maxSeries) throw wrong(`its labels produce ${series} series, at most ${maxSeries} are allowed`)
  if (kind !== "histogram") return
  const isAscending = boundaries.every(
    (value, index) => Number.isFinite(value) && !(value <= (boundaries[index - 1] ?? -Infinity)),
  )
  if (boundaries.length === 0 || !isAscending) {
    throw wrong(`boundaries must be finite, ascending and not empty, got [${boundaries}]`)
  }
}

/** The label values of all series that there are from the start: those of labels with lists. */
export const initialSeries = ({ labels }: FamilySpec): ReadonlyArray<ReadonlyArray<string>> => {
  let series: ReadonlyArray<ReadonlyArray<string>> = [[]]
  for (const values of Object.values(labels)) {
    if (typeof values === "number") return []
    series = series.flatMap((before) => values.map((value) => [...before, value]))
  }
  return series
}

/** Which value each label has in the metrics, so that there are never more than there may be. */
export class LabelBounds {
  readonly #known: ReadonlyArray<{ readonly values: Set<string>; readonly max: number }>

  constructor({ labels }: FamilySpec) {
    this.#known = Object.values(labels).map((values) =>
      typeof values === "number" ? { values: new Set(), max: values } : { values: new Set(values), max: values.length },
    )
  }

  /** Both in the order of the declaration. */
  values(given: ReadonlyArray<string>): ReadonlyArray<string> {
    return this.#known.map(({ values, max }, index) => {
      const value = given[index] ?? ""
      if (values.has(value)) return value
      if (values.size >= max) return other
      values.add(value)
      return value
    })
  }
}

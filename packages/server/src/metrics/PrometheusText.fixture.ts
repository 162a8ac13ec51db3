/**
 * Strict parser of Prometheus' text format, for tests. It checks everything that a scrape requires: one head per
 * family, before its samples; unique series; names, escapes, and cumulative buckets.
 */
import assert from "node:assert/strict"

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Family {
  readonly type: string
  readonly help: string
  readonly samples: ReadonlyArray<Sample>
}

export const parse = (text: string): ReadonlyMap<string, Family> => {
  assert.ok(text.endsWith("\n"), "the last line has an end")
  const families = new Map<string, { type: string; help: string; samples: Array<Sample> }>()
  const series = new Set<string>()
  let current = ""
  for (const line of text.slice(0, -1).split("\n")) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/.exec(line)
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary)$/.exec(line)
    if (help !== null) {
      const [, name = "", words = ""] = help
      assert.ok(!families.has(name), `one HELP: ${name}`)
      families.set(name, { type: "", help: words, samples: [] })
      current = name
    } else if (type !== null) {
      const [, name = "", kind = ""] = type
      const family = families.get(name)
      // Metrics of the process without a description have no HELP.
      if (family === undefined) families.set(name, { type: kind, help: "", samples: [] })
      else {
        assert.ok(name === current && family.type === "", `TYPE behind its HELP: ${line}`)
        family.type = kind
      }
      current = name
    } else {
      const sample = parseSample(line)
      const family = families.get(current)
      assert.ok(family !== undefined && family.type !== "", `samples behind their head: ${line}`)
      assert.ok(
        suffixes(family.type).some((suffix) => sample.name === current + suffix),
        `in its family: ${line}`,
      )
      const [identity = ""] = line.split(/ [^ ]+$/)
      assert.ok(!series.has(identity), `one sample of a series: ${line}`)
      series.add(identity)
      family.samples.push(sample)
    }
  }
  for (const [name, { type, samples }] of families) if (type === "histogram") checkBuckets(name, samples)
  return families
}

const suffixes = (type: string): ReadonlyArray<string> => {
  if (type === "histogram") return ["_bucket", "_sum", "_count"]
  return type === "summary" ? ["", "_sum", "_count"] : [""]
}

const parseSample = (line: string): Sample => {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
  assert.ok(match !== null, `a sample: ${line}`)
  const [, name = "", inner = "", number = ""] = match
  const value = number === "+Inf" ? Infinity : Number(number)
  assert.ok(number === "NaN" || !Number.isNaN(value), `a number: ${line}`)
  const labels: Record<string, string> = {}
  const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\["\\n])*)"(?:,|$)/y
  while (label.lastIndex < inner.length) {
    const [, key = "", escaped = ""] = label.exec(inner) ?? assert.fail(`labels: ${line}`)
    assert.ok(!(key in labels), `one label of a name: ${line}`)
    labels[key] = escaped.replaceAll(/\\(.)/g, (_, character) => (character === "n" ? "\n" : character))
  }
  const own = Object.keys(labels).filter((key) => key !== "quantile" && key !== "le")
  assert.deepEqual(own, own.toSorted(), `labels in order: ${line}`)
  return { name, labels, value }
}

const checkBuckets = (name: string, samples: ReadonlyArray<Sample>) => {
  let below = 0
  for (const { name: sample, value } of samples) {
    if (sample === `${name}_bucket`) {
      assert.ok(value >= below, `buckets grow: ${name}`)
      below = value
    } else if (sample === `${name}_count`) {
      assert.equal(value, below, `the last bucket is all: ${name}`)
      below = 0
    }
  }
}

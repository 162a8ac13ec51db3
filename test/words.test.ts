/**
 * Checks the words of help texts, metric HELP texts, messages and test names. comments.test.ts checks comments. The
 * guide of the command line lists every help text; CommandLine.test.ts compares the two.
 */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { describe, expect, it } from "vitest"
import { nereid, root } from "./Program.ts"

const relativeClause = /^(?:who|what|whoever|whatever|whose)\b(?!.*\?$)/i

/** Phrases that hide a subject, or that the field has a word for. */
const dialect =
  /\b(?:nobody|whoever|over there|of (?:its|their) own|(?<!there )(?:is|are) (?:none|told)|has to be told|such a)\b/i

const problems = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  texts.filter((text) => relativeClause.test(text) || dialect.test(text))

interface FlagRow {
  readonly name: string
  readonly takes: string
  readonly help: string
}

/** The flags of all commands, from the tables of the guide. */
const flags = (): ReadonlyArray<FlagRow> => {
  const page = readFileSync(join(root, "docs/guides/command-line.md"), "utf8").replaceAll("\\|", "/")
  return [...page.matchAll(/^\| `--([\w-]+)`[^|]* \| ([^|]+) \| ([^|]+) \|$/gm)].map(
    ([, name = "", takes = "", help = ""]) => ({ name, takes, help }),
  )
}

const anyPort = { host: "127.0.0.1", port: 0 }

class Sum extends Model.Service<Sum>()("sum", {
  inputs: { X: Tensor.FP32("n") },
  outputs: { Y: Tensor.scalar("FP32") },
  maxBatchSize: 4,
  batching: { padTo: [4], ragged: { n: {} } },
}) {}

const SumLive = Model.each(Sum, ({ X }) => ({ Y: X.data.reduce((sum, x) => sum + x, 0) }), { responseCache: true })

class Count extends Model.Service<Count>()("count", {
  inputs: { N: Tensor.scalar("INT32") },
  outputs: { I: Tensor.scalar("INT32") },
}) {}

const CountLive = Model.stream(Count, ({ N }) => Array.from({ length: N }, (_, index) => ({ I: index })))

/** The HELP texts of every family of the server, with all options of metrics. */
const metricHelp = async (): Promise<ReadonlyArray<string>> => {
  const server = await Server.start([Sum, Count], Layer.merge(SumLive, CountLive), {
    http: anyPort,
    grpc: false,
    metrics: anyPort,
    metricsOptions: { histogramLatencies: true, summaryLatencies: true },
    logging: { info: false },
  })
  try {
    const text = await (await fetch(`http://127.0.0.1:${server.metrics.port}/metrics`)).text()
    return [...text.matchAll(/^# HELP \S+ (.*)$/gm)].map(([, help = ""]) => help)
  } finally {
    await server.stop()
  }
}

const paths = (pattern: string): ReadonlyArray<string> =>
  globSync(pattern, { cwd: root, exclude: ["**/node_modules/**", "**/gen/**", "**/dist/**"] })

const isTest = (path: string): boolean => /\.(?:test|fixture)\.ts$/.test(path)

/** String and template literals with several words, which are messages for people. */
const messages = (path: string): ReadonlyArray<string> => {
  const code = readFileSync(join(root, path), "utf8").replaceAll(/\/\*[^]*?\*\/|(?<![:"'`\\\w])\/\/.*/g, "")
  return [...code.matchAll(/(["`])((?:\\.|(?!\1)[^\\\n])*)\1/g)]
    .map(([, , text = ""]) => text)
    .filter((text) => /[a-z]{2} [a-z]{2}/.test(text))
}

/** The names in a call of `it`, `describe` or the like, also behind `.each(…)`. */
const testName = /(?:\b(?:it|test|describe|live)(?:\.\w+)*|\))\(\s*(["'`])((?:\\.|(?!\1)[^\n])*)\1,/g

const testNames = (path: string): ReadonlyArray<string> =>
  [...readFileSync(join(root, path), "utf8").matchAll(testName)].map(([, , name = ""]) => name)

describe("a help text", () => {
  it("opens with a noun or a verb, in plain words", async () => {
    const { output } = await nereid("--help").ended
    const commands = [...output.matchAll(/^ {2}(?:serve|generate|export|bench|check|init) +(.+)$/gm)].map(
      ([, text = ""]) => text,
    )
    expect(commands).toHaveLength(6)
    expect(flags().length).toBeGreaterThan(120)
    expect(problems([...commands, ...flags().map(({ help }) => help)])).toEqual([])
  })

  it("has at most 160 characters", () => {
    expect(flags().filter(({ help }) => help.length > 160)).toEqual([])
  })

  it("names the unit of a time or a size", () => {
    const measures = flags().filter(
      ({ name, takes }) =>
        ["integer", "number"].includes(takes) &&
        /secs|-ms$|time|interval|age\b|size|seconds|warm-up|patience|threshold|length/.test(name),
    )
    expect(measures.length).toBeGreaterThan(15)
    expect(measures.filter(({ help }) => !/in (?:milli)?seconds|in bytes|in letters|\brows\b/i.test(help))).toEqual([])
  })

  it("has no default in bare parentheses", () => {
    expect(flags().filter(({ help }) => /\((?!default )[^ )]+\)$/.test(help))).toEqual([])
  })
})

it("a metric HELP text opens with a noun, in plain words", async () => {
  const texts = await metricHelp()
  expect(new Set(texts).size).toBeGreaterThan(25)
  expect(problems(texts)).toEqual([])
})

it("an error, a log line or other output uses plain words", () => {
  const found = paths("packages/*/src/**/*.ts").flatMap((path) =>
    isTest(path) ? [] : messages(path).map((text) => ({ path, text })),
  )
  expect(found.length).toBeGreaterThan(800)
  expect(found.filter(({ text }) => problems([text]).length > 0)).toEqual([])
})

it("a test name opens with a noun or a verb, in plain words", () => {
  const names = paths("{packages,test,examples}/**/*.test.ts").flatMap((path) =>
    testNames(path).map((name) => ({ path, name })),
  )
  expect(names.length).toBeGreaterThan(1500)
  expect(names.filter(({ name }) => problems([name]).length > 0)).toEqual([])
})

/** Sweeps over a target that replies at once: connections, measurements and summaries. */
import { expect, it } from "vitest"
import * as Curve from "../report/Curve.ts"
import type { Level } from "./Level.ts"
import type { Overload, Target } from "../target/Load.ts"
import type { Counters } from "../target/ServerCounters.ts"
import * as Summary from "../report/Summary.ts"
import * as Sweep from "./Sweep.ts"
import * as Table from "../report/Table.ts"

interface Setting {
  readonly perConnection?: number
  readonly problem?: (request: number) => string | undefined
  readonly overload?: Overload
  readonly statistics?: () => Counters | undefined
}

const sweep = async (
  levels: Sweep.SweepOptions["levels"],
  setting: Setting = {},
  options: Partial<Sweep.SweepOptions> = {},
) => {
  let requests = 0
  let opened = 0
  let open = 0
  const target: Target = {
    perConnection: setting.perConnection ?? Infinity,
    connect: async ({ onReply }) => {
      opened += 1
      open += 1
      return {
        accepts: true,
        send: (startedAt) => setImmediate(onReply, startedAt, setting.problem?.(requests++), setting.overload),
        close: () => (open -= 1),
      }
    },
  }
  const log: Array<string> = []
  const results: Array<Sweep.LevelResult> = []
  const run = Sweep.run({
    target,
    levels,
    rounds: 3,
    extent: { requests: 40 },
    warmUp: { requests: 10 },
    connections: 4,
    maxOutstanding: 8,
    patience: 1000,
    seed: 1,
    clock: { now: () => performance.now(), wake: (_, call) => setImmediate(call), close: () => {} },
    statistics: async () => setting.statistics?.(),
    onRound: (level, round) => log.push(`${"perSecond" in level ? level.perSecond : level.concurrency}:${round}`),
    ...options,
  })
  for await (const result of run) results.push(result)
  return { results, log, opened, open, summaries: results.map((result) => Summary.make(result, [50, 99])) }
}

it("each level is warmed up, and then measured in rounds", async () => {
  const { results, log, open } = await sweep([{ concurrency: 2 }, { concurrency: 8 }])
  expect(log).toEqual(["2:0", "2:1", "2:2", "2:3", "8:0", "8:1", "8:2", "8:3"])
  expect(results.map(({ rounds }) => rounds.map(({ requests }) => requests))).toEqual([
    [40, 40, 40],
    [40, 40, 40],
  ])
  expect(open).toBe(0)
})

it.each<readonly [string, number, Level, number]>([
  ["many requests share some connections", Infinity, { concurrency: 16 }, 4],
  ["no connection is without a request", Infinity, { concurrency: 2 }, 2],
  ["each request has a connection of its own", 1, { concurrency: 16 }, 16],
])("%s", async (_, perConnection, level, expected) => {
  expect((await sweep([level], { perConnection })).opened).toBe(expected)
})

it("sends at a rate, over no more connections than it takes", async () => {
  const { results, opened } = await sweep([{ perSecond: 5000, distribution: "poisson" }], { perConnection: 1 })
  expect(results[0]?.rounds.map(({ requests, lateness }) => [requests, (lateness?.count ?? 0) > 0])).toEqual(
    Array.from({ length: 3 }, () => [40, true]),
  )
  expect(opened).toBeLessThanOrEqual(8)
})

it("measures the capacity before it sends a multiple of it", async () => {
  const multiple = { times: 2, concurrency: 4, distribution: "constant" } as const
  const { results, summaries } = await sweep([multiple], {}, { deadline: { milliseconds: 1000, isTold: true } })
  const [level] = results.map(({ level }) => level)
  const { overload, perSecond } = level !== undefined && "perSecond" in level ? level : {}
  expect(overload?.capacity).toBeGreaterThan(0)
  expect(perSecond).toBe((overload?.capacity ?? 0) * 2)
  expect(summaries[0]?.goodput).toMatchObject({ overload, refused: 0, late: 0 })
  const row = Table.row(summaries[0]!, { open: true, batchSize: 1, percentages: [99], server: false, deadline: true })
  expect(row.trim().split(/ +/)).toHaveLength(10)
})

it("goes on after a level at which nothing was in time", async () => {
  const level = { perSecond: 5000, distribution: "constant" } as const
  const { results } = await sweep(
    [level, level],
    { problem: () => "UNAVAILABLE", overload: "refused" },
    { deadline: { milliseconds: 1000, isTold: true }, rounds: 1 },
  )
  expect(results.map(({ rounds }) => rounds.map(({ goodput }) => goodput?.refused.count))).toEqual([[40], [40]])
})

it("ends where nothing is answered as it should be", async () => {
  const { results, log } = await sweep([{ concurrency: 2 }, { concurrency: 4 }], { problem: () => "no" })
  expect(log).toEqual(["2:0", "2:1"])
  expect(results).toHaveLength(1)
})

it("counts errors, and keeps their words", async () => {
  const { summaries } = await sweep([{ concurrency: 4 }], {
    problem: (request) => (request % 4 === 0 ? `number ${request % 8}` : undefined),
  })
  const [summary] = summaries
  expect(summary).toMatchObject({ errors: 30, requests: 90, rounds: 3 })
  expect([...(summary?.messages ?? [])].toSorted()).toEqual([
    ["number 0", 15],
    ["number 4", 15],
  ])
})

it("reports the server's counters, and requests of other clients", async () => {
  let count = 0
  const statistics = (): Counters => {
    count += 1000
    return {
      requests: count,
      queue: count * 2,
      compute: count * 3,
      inferences: count * 4,
      executions: count,
      cacheHits: 1,
    }
  }
  const { summaries } = await sweep([{ concurrency: 4 }], { statistics })
  expect(summaries[0]?.server).toEqual({ requests: 3000, queue: 2, compute: 3, meanBatch: 4, cacheHits: 0 })
  expect(summaries[0]?.remarks).toContainEqual(expect.stringContaining("the server counted 2880 more requests"))
})

it("figures are medians of the rounds", () => {
  expect([[3, 1, 2], [4, 1, 2, 3], [7]].map(Summary.median)).toEqual([2, 2, 7])
})

it("a table has a column for everything there is", async () => {
  const { summaries } = await sweep([{ concurrency: 4 }])
  const options = { open: false, batchSize: 8, percentages: [50, 99], server: false }
  const titles = Table.head(options).split("\n")[0]?.trim().split(/ {2,}/)
  expect(titles).toEqual(["concurrency", "requests/s", "rows/s", "p50 ms", "p99 ms", "max ms", "errors", "load %"])
  const [summary] = summaries
  const cells = summary === undefined ? [] : Table.row(summary, options).trim().split(/ +/)
  expect(cells).toHaveLength(8)
  expect(cells[0]).toBe("4")
  expect(Number(cells[2])).toBeCloseTo(Number(cells[1]) * 8, -2)
  expect(Table.head({ ...options, open: true, server: true, batchSize: 1 })).toMatch(
    /sent\/s.*queue ms +compute ms +batch/,
  )
  const lines = Table.csv(summaries, [50]).split("\n")
  expect(lines[0]).toBe("concurrency,sent/s,requests/s,mean ms,p50 ms,max ms,errors,queue ms,compute ms,batch,load %")
  expect(lines[1]).toMatch(/^4,,\d+(\.\d+)?,[\d.]+,[\d.]+,[\d.]+,0,,,,[\d.]+$/)
  const server = { requests: 4, queue: 0.5, compute: 2, meanBatch: 3.5, cacheHits: 0 }
  const known = summaries.map((each) => ({ ...each, server, cpu: 0.25 }))
  expect(Table.csv(known, [50]).split("\n")[1]).toMatch(/,0,0\.5,2,3\.5,25$/)
})

it.each([
  ["several levels", [{ concurrency: 1 }, { concurrency: 4 }]],
  ["one level", [{ concurrency: 4 }]],
  ["no level", []],
])("a curve of %s is a picture", async (_, levels) => {
  const { summaries } = await sweep(levels)
  const svg = Curve.svg(summaries, { title: "a & b <c>", subtitle: "", percentages: [50, 99] })
  expect(svg).toMatch(/^<svg xmlns[^]*<\/svg>\n$/)
  expect(svg).toContain("a &amp; b &lt;c&gt;")
  expect(svg).toContain("@media(prefers-color-scheme:dark)")
  expect(svg).not.toMatch(/NaN|Infinity|undefined/)
  expect(svg.match(/<circle/g) ?? []).toHaveLength(levels.length * 2)
  expect(svg.match(/class="level"/g) ?? []).toHaveLength(levels.length)
})

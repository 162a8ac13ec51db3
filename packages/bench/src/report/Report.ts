/** Formats all results of a benchmark as JSON: the requests, the server, and every round at every level. */
import { cpus } from "node:os"
import type { Benchmark, BenchmarkOptions } from "../benchmark/Benchmark.ts"
import * as Level from "../load/Level.ts"
import * as Summary from "./Summary.ts"
import type { LevelResult, RoundResult } from "../load/Sweep.ts"

/** Percentiles in every report, in addition to the requested ones. */
const percentages: ReadonlyArray<number> = [1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99]

export interface ReportOptions {
  readonly benchmark: Benchmark
  readonly options: BenchmarkOptions
  readonly url: string
  readonly percentages: ReadonlyArray<number>
  readonly date: Date
}

/** Times in milliseconds, bytes in bytes, shares from 0 to 1. */
export const make = (results: ReadonlyArray<LevelResult>, report: ReportOptions) => {
  const { benchmark, options, url, date } = report
  const all = [...new Set([...percentages, ...report.percentages])].toSorted((one, other) => one - other)
  return {
    date: date.toISOString(),
    load: { node: process.version, cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length },
    url,
    protocol: options.protocol,
    model: { name: benchmark.model.name, version: options.model.version, platform: benchmark.model.platform },
    request: {
      variants: benchmark.requests,
      batch_size: benchmark.batchSize,
      inputs: benchmark.request.inputs.map(({ name, datatype, shape, bytes }) => ({
        name,
        datatype,
        shape,
        bytes: bytes.length,
      })),
    },
    levels: results.map((result) => level(result, all)),
  }
}

const level = (result: LevelResult, percentages: ReadonlyArray<number>) => {
  const { level, requests, perSecond, mean, max, percentiles, errors, messages, server, cpu, busy, remarks, goodput } =
    Summary.make(result, percentages)
  return {
    ...(Level.isOpen(level)
      ? { sent_per_second: level.perSecond, distribution: level.distribution }
      : { concurrency: level.concurrency }),
    requests,
    requests_per_second: perSecond,
    latency: { mean, max, percentiles: Object.fromEntries(percentiles) },
    ...(goodput === undefined ? {} : { goodput: goodputOf(goodput) }),
    errors: { count: errors, messages: Object.fromEntries(messages) },
    server: share(server),
    load: { cpu, busy },
    remarks,
    rounds: result.rounds.map((measured) => round(measured, percentages)),
  }
}

const goodputOf = ({ overload, refused, late, accepted, refusal }: Summary.GoodputSummary) => ({
  capacity: overload?.capacity ?? null,
  times: overload?.times ?? null,
  refused_per_second: refused,
  late_per_second: late,
  accepted_percentiles: Object.fromEntries(accepted),
  refusal_p99: refusal,
})

const round = (
  {
    requests,
    seconds,
    perSecond,
    latencies,
    problems,
    usage,
    reconnections,
    server,
    lateness,
    held,
    unsent,
  }: RoundResult,
  percentages: ReadonlyArray<number>,
) => ({
  requests,
  seconds,
  requests_per_second: perSecond,
  latency: {
    mean: latencies.mean,
    min: latencies.min,
    max: latencies.max,
    percentiles: Object.fromEntries(percentages.map((percentage) => [percentage, latencies.percentile(percentage)])),
  },
  errors: { count: problems.count, messages: Object.fromEntries(problems.messages) },
  server: share(server),
  load: { ...usage, reconnections, ...(lateness === undefined ? {} : { late: lateness.percentile(99), held, unsent }) },
})

const share = (server: RoundResult["server"]) =>
  server === undefined
    ? null
    : {
        requests: server.requests,
        queue: server.queue,
        compute: server.compute,
        mean_batch: server.meanBatch,
        cache_hits: server.cacheHits,
      }

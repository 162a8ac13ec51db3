/** Summarizes the rounds of a level: medians of measurements, sums of errors, and remarks. */
import type { Latencies } from "../load/Latencies.ts"
import * as Level from "../load/Level.ts"
import type { ServerShare } from "../target/ServerCounters.ts"
import type { LevelResult, RoundResult } from "../load/Sweep.ts"

export interface Summary {
  readonly level: Level.Level
  readonly rounds: number
  /** Requests answered in all rounds. */
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. `max` is that of all rounds. */
  readonly mean: number
  readonly max: number
  readonly percentiles: ReadonlyMap<number, number>
  readonly errors: number
  /** The first few that differ, and how often. */
  readonly messages: ReadonlyMap<string, number>
  readonly server: ServerShare | undefined
  /** Undefined without a deadline. */
  readonly goodput: GoodputSummary | undefined
  /** Shares of one core and of the time: Usage.ts. */
  readonly cpu: number
  readonly busy: number
  /** Remarks that qualify the figures. */
  readonly remarks: ReadonlyArray<string>
}

/** Requests at a rate, with a deadline. Medians of the rounds. */
export interface GoodputSummary {
  /** Multiple of the capacity, and the capacity in requests per second; undefined for a rate that was given. */
  readonly overload: NonNullable<Level.OpenLevel["overload"]> | undefined
  /** Requests per second that were refused, and those whose callers gave up. */
  readonly refused: number
  readonly late: number
  /** Milliseconds, of accepted requests; callers that gave up included. */
  readonly accepted: ReadonlyMap<number, number>
  /** 99th percentile of the time until a refusal, in milliseconds; NaN without refusals. */
  readonly refusal: number
}

/** The lower one of the two in the middle. */
export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((one, other) => one - other)[Math.floor((values.length - 1) / 2)] ?? Number.NaN

export const make = ({ level, rounds }: LevelResult, percentages: ReadonlyArray<number>): Summary => {
  const of = (figure: (round: RoundResult) => number) => median(rounds.map(figure))
  const latency = (figure: (latencies: Latencies) => number) => of(({ latencies }) => figure(latencies))
  const summary = {
    level,
    rounds: rounds.length,
    requests: sum(rounds, ({ requests }) => requests),
    perSecond: of(({ perSecond }) => perSecond),
    mean: latency(({ mean }) => mean),
    max: Math.max(...rounds.map(({ latencies }) => latencies.max)),
    percentiles: new Map(percentages.map((percentage) => [percentage, latency((all) => all.percentile(percentage))])),
    errors: sum(rounds, ({ problems }) => problems.count),
    messages: messages(rounds),
    server: server(rounds),
    goodput: goodput(level, rounds, percentages),
    cpu: of(({ usage }) => usage.cpu),
    busy: of(({ usage }) => usage.busy),
  }
  return { ...summary, remarks: remarks(level, rounds, summary) }
}

const goodput = (
  level: Level.Level,
  rounds: ReadonlyArray<RoundResult>,
  percentages: ReadonlyArray<number>,
): GoodputSummary | undefined => {
  const measured = rounds.flatMap(({ goodput, seconds }) => (goodput === undefined ? [] : [{ ...goodput, seconds }]))
  if (measured.length === 0) return undefined
  const of = (figure: (round: (typeof measured)[number]) => number) => median(measured.map(figure))
  return {
    overload: Level.isOpen(level) ? level.overload : undefined,
    refused: of(({ refused, seconds }) => refused.count / seconds),
    late: of(({ late, seconds }) => late / seconds),
    accepted: new Map(percentages.map((each) => [each, of(({ accepted }) => accepted.percentile(each))])),
    refusal: of(({ refused }) => refused.percentile(99)),
  }
}

const sum = (rounds: ReadonlyArray<RoundResult>, figure: (round: RoundResult) => number): number =>
  rounds.reduce((total, round) => total + figure(round), 0)

const messages = (rounds: ReadonlyArray<RoundResult>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const { problems } of rounds) {
    for (const [message, count] of problems.messages) counts.set(message, (counts.get(message) ?? 0) + count)
  }
  return counts
}

/** Undefined unless all rounds have one. */
const server = (rounds: ReadonlyArray<RoundResult>): ServerShare | undefined => {
  const shares = rounds.flatMap((round) => round.server ?? [])
  if (shares.length < rounds.length) return undefined
  const of = (figure: keyof ServerShare) => median(shares.map((share) => share[figure]))
  const total = (figure: keyof ServerShare) => shares.reduce((all, share) => all + share[figure], 0)
  return {
    requests: total("requests"),
    queue: of("queue"),
    compute: of("compute"),
    meanBatch: of("meanBatch"),
    cacheHits: total("cacheHits"),
  }
}

/** From here on the load has too little time for its own work to be trusted with that of others. */
const busyLoad = 0.9
/** Milliseconds. */
const lateLoad = 1

const remarks = (
  level: Level.Level,
  rounds: ReadonlyArray<RoundResult>,
  { requests, busy, errors, server }: Omit<Summary, "remarks">,
): ReadonlyArray<string> => {
  const found: Array<string> = []
  const refusedOrLate = sum(rounds, ({ goodput }) => (goodput === undefined ? 0 : goodput.refused.count + goodput.late))
  if (requests + errors + refusedOrLate === 0)
    found.push("no response arrived within a round: use longer rounds (--seconds)")
  // At a fixed rate, the busy wait for the next request counts as busy; lateness is the better indicator there.
  if (!Level.isOpen(level) && busy >= busyLoad) {
    const share = `${(100 * busy).toFixed(0)} %`
    found.push(`the load generator was busy ${share} of the time: it may limit the results instead of the server`)
  }
  const lateness = median(rounds.flatMap((round) => round.lateness?.percentile(99) ?? []))
  if (lateness > lateLoad) {
    found.push(`the load generator was late: 1 % of the requests were sent at least ${lateness.toFixed(1)} ms too late`)
  }
  const held = sum(rounds, (round) => round.held)
  if (held > 0)
    found.push(
      `${held} requests waited to be sent, because the maximum of requests in flight was reached (--max-outstanding)`,
    )
  const unsent = sum(rounds, (round) => round.unsent)
  if (unsent > 0)
    found.push(`${unsent} requests could not be sent in their round: the rate exceeds the throughput of the server`)
  const reconnections = sum(rounds, (round) => round.reconnections)
  if (reconnections > 0) found.push(`the server closed ${reconnections} connections, which were reopened`)
  if (server === undefined) return found
  if (server.cacheHits > 0) found.push(`the server answered ${server.cacheHits} requests from its response cache`)
  const otherRequests = server.requests - requests - errors - refusedOrLate
  // Requests in flight at the end of a round also receive replies.
  const late = Level.isOpen(level) ? 0 : level.concurrency * rounds.length
  if (otherRequests > late + Math.max(100, requests / 10)) {
    found.push(`the server counted ${otherRequests} more requests than this load sent: other clients are using it`)
  }
  return found
}

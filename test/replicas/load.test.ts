/**
 * Clients of three replicas under a constant load: one replica is killed, stopped, halted or slowed down, and comes
 * back. One client declares the model idempotent, the other does not. Prints the figures; `TEST_RATE` sets the calls
 * per second, of which a machine that is too busy gets a part.
 *
 * Times are compared with those of healthy replicas just before and after, in the same process and on the same machine:
 * by the medians of windows of a second, because other work on the machine delays some of them.
 */
import { Client } from "@nereid/client"
import { Effect, Metric } from "effect"
import { afterAll, expect, it } from "vitest"
import { Work } from "./models.ts"
import { Load, median, Replicas } from "./Replicas.ts"

const rate = Number(process.env["TEST_RATE"] ?? 500)

/** Median time of a call of healthy replicas, in milliseconds, above which the machine is too busy for the rate. */
const busy = 40

/** Windows of each phase, and at most: a phase goes on if the machine was too busy to tell. */
const windows = { least: 5, most: 15 }

/** Time from the beginning of a disturbance until calls must be as fast as ever. */
const settling = 2_000

/** Time from the end of a disturbance until the replica must have its share: ejection, return and forgiveness. */
const recovery = 6_000

const lines: Array<string> = []
afterAll(() => console.log(lines.join("\n")))

interface Disturbance {
  readonly name: string
  readonly begin: NodeJS.Signals
  readonly end: (replicas: Replicas) => Promise<void> | void
  /** Errors of calls that it may have executed, where that matters. Default: none. */
  readonly lost?: RegExp
}

const disturbances: ReadonlyArray<Disturbance> = [
  {
    name: "killed",
    begin: "SIGKILL",
    end: (replicas) => replicas.restart(2),
    lost: /^Unavailable: the connection to .* was lost/,
  },
  { name: "stopped", begin: "SIGTERM", end: (replicas) => replicas.restart(2) },
  { name: "halted", begin: "SIGSTOP", end: (replicas) => replicas.signal(2, "SIGCONT"), lost: /^DeadlineExceeded/ },
  { name: "ten times slower", begin: "SIGUSR2", end: (replicas) => replicas.signal(2, "SIGUSR2") },
]

/** Attempts that have ended on a replica, by the metric. */
const attemptsOn = (replica: string): number =>
  Effect.runSync(Metric.snapshot).reduce((sum, metric) => {
    if (metric.id !== "nereid_client_attempts" || metric.type !== "Counter") return sum
    return metric.attributes?.["replica"] === replica ? sum + Number(metric.state.count) : sum
  }, 0)

type Caller = { readonly infer: (inputs: { readonly X: number }) => Promise<{ readonly PROCESS: number }> }

/** Loads of the two clients, at a rate that the machine can carry. */
const begin = async (idempotent: Caller, once: Caller) => {
  let next = 0
  for (let part = 1; part <= 4; part *= 2) {
    const load = new Load(rate / part, () => idempotent.infer({ X: next++ }))
    const other = new Load(rate / part / 10, () => once.infer({ X: next++ }))
    // Compiled code and connections.
    await load.run(3_000)
    const from = load.now
    await load.run(1_000)
    if (load.between(from, load.now).percentile(50) < busy) return { load, other }
    await Promise.all([load.end(), other.end()])
  }
  throw new Error(`The machine cannot carry ${rate / 4} calls per second`)
}

/** In milliseconds. */
const shown = (times: ReadonlyArray<number>): string =>
  `${median(times).toFixed(0)} ms (${times.map((time) => time.toFixed(0)).join(" ")})`

/** The largest difference of a share from an even one, as a part of it. */
const unevenness = (shares: ReadonlyArray<number>): number =>
  Math.max(...shares.map((share) => Math.abs(share * shares.length - 1)))

it.each(["grpc", "http"] as const)(
  "%s: no call fails that could have succeeded, and others are as fast and as even as before",
  { timeout: 300_000 },
  async (protocol) => {
    await using replicas = await Replicas.start()
    const options = { url: replicas.urls(protocol), timeout: "10 seconds" } as const
    const ejection = { returnTime: "2 seconds" } as const
    await using idempotent = await Client.connect(Work, {
      ...options,
      replicas: { idempotent: true, hedge: { after: "150 millis" }, health: true, ejection },
    })
    await using once = await Client.connect(Work, { ...options, replicas: { health: true, ejection } })
    const { load, other } = await begin(idempotent, once)
    lines.push(`${protocol}: ${load.rate} calls per second`)
    const attempts = () => attemptsOn(`127.0.0.1:${replicas.at(2).ports[protocol]}`)
    const note = (phase: string, text: string) => lines.push(`${protocol} ${phase}: ${text}`)

    /** 99th percentiles of the windows of a phase, in milliseconds. */
    const phase = async (count: number) => {
      const edges = [load.now]
      for (let window = 0; window < count; window++) {
        await load.run(1_000)
        edges.push(load.now)
      }
      await load.settled()
      const times = edges.slice(1).map((edge, index) => load.between(edges[index] ?? 0, edge).percentile(99))
      return { from: edges[0] ?? 0, to: edges.at(-1) ?? 0, times }
    }

    /** A phase in which all replicas have an even share; the third one at the latest. */
    const healthy = async (name: string) => {
      for (let attempt = 1; ; attempt++) {
        const { from, to, times } = await phase(windows.least)
        const { pids } = replicas
        const difference = unevenness(load.between(from, to).shares(pids))
        // A replica that starts, or a health check, may be late on a busy machine.
        if (difference >= 0.1 && attempt < 3) continue
        note(name, load.between(from, to).line(pids))
        expect.soft(difference, `${name}: unevenness`).toBeLessThan(0.1)
        return times
      }
    }

    let before = await healthy("healthy")
    for (const { name, begin, end, lost } of disturbances) {
      const { pids } = replicas
      const began = load.now
      replicas.signal(2, begin)
      await load.run(settling)
      note(`${name}, first 2 s`, load.between(began, load.now).line(pids))
      const settled = load.now
      const times: Array<number> = []
      const limit = (healthy: ReadonlyArray<number>) => 2 * median(healthy)
      const others = pids.slice(0, 2)
      const starts: Array<number> = []
      /** Attempts that went to it, as parts of the calls of each window. */
      const parts: Array<number> = []
      /** Of the others in the last windows. Servers of a busy machine differ in speed for seconds. */
      const difference = () => unevenness(load.between(starts.at(-windows.least) ?? 0, load.now).shares(others))
      const disturbedMore = () => median(times) > limit(before) || difference() >= 0.1
      while (times.length < windows.least || (disturbedMore() && times.length < windows.most)) {
        const sent = attempts()
        const { from, to, times: window } = await phase(1)
        starts.push(from)
        parts.push((attempts() - sent) / load.between(from, to).count)
        times.push(...window)
      }
      const uneven = difference()
      const disturbed = load.between(settled, load.now)
      const after = load.now
      await end(replicas)
      await load.run(recovery)
      const afterwards = await healthy(`${name}, healthy again`)
      note(`${name}, then`, disturbed.line(pids))
      const { errors, count } = other.between(began, after)
      note(`${name}, not idempotent`, [`${count} calls, ${errors.length} failed`, ...new Set(errors)].join("\n"))
      note(`${name}, p99 of windows`, `${shown(times)}, healthy before ${shown(before)}, after ${shown(afterwards)}`)
      note(`${name}, attempts on it`, parts.map((part) => `${(100 * part).toFixed(2)} %`).join(" "))
      expect(errors.filter((error) => lost?.test(error) !== true)).toEqual([])
      // Those that were under way at the replica, before the client knew.
      expect(errors.length).toBeLessThan(10)
      // A machine that stands still makes all replicas slow, and so calls go to this one as well.
      expect.soft(median(parts), `${name}: median part of the attempts that went to it`).toBeLessThan(0.01)
      expect.soft(uneven, `${name}: unevenness of the others`).toBeLessThan(0.1)
      // The machine may have been busier before than after, or after than before.
      const allowed = Math.max(limit(before), limit(afterwards))
      expect.soft(median(times), `${name}: median p99 of a second, in ms`).toBeLessThanOrEqual(allowed)
      before = afterwards
    }
    await Promise.all([load.end(), other.end()])
    expect(load.between(0, Infinity).errors).toEqual([])
  },
)

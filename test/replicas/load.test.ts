/**
 * Clients of three replicas under a constant load: one replica is killed, stopped, halted or slowed down, and comes
 * back. One client declares the model idempotent, the other does not. Prints the figures; `TEST_RATE` sets the calls
 * per second.
 */
import { Client } from "@nereid/client"
import { Effect, Metric } from "effect"
import { afterAll, expect, it } from "vitest"
import { Work } from "./models.ts"
import { Load, Replicas } from "./Replicas.ts"

const rate = Number(process.env["TEST_RATE"] ?? 500)

const lines: Array<string> = []
afterAll(() => console.log(lines.join("\n")))

interface Disturbance {
  readonly name: string
  readonly begin: NodeJS.Signals
  readonly end: (replicas: Replicas) => Promise<void> | void
  /** Whether a call fails that the server may have executed, where that matters. */
  readonly loses: boolean
}

const disturbances: ReadonlyArray<Disturbance> = [
  { name: "killed", begin: "SIGKILL", end: (replicas) => replicas.restart(2), loses: true },
  { name: "stopped", begin: "SIGTERM", end: (replicas) => replicas.restart(2), loses: false },
  { name: "halted", begin: "SIGSTOP", end: (replicas) => replicas.signal(2, "SIGCONT"), loses: false },
  { name: "ten times slower", begin: "SIGUSR2", end: (replicas) => replicas.signal(2, "SIGUSR2"), loses: false },
]

/** Attempts that have ended on a replica, by the metric. */
const attemptsOn = (replica: string): number =>
  Effect.runSync(Metric.snapshot).reduce((sum, metric) => {
    if (metric.id !== "nereid_client_attempts" || metric.type !== "Counter") return sum
    return metric.attributes?.["replica"] === replica ? sum + Number(metric.state.count) : sum
  }, 0)

it.each(["grpc", "http"] as const)(
  "%s: no call fails that could have succeeded",
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
    let next = 0
    const load = new Load(rate, () => idempotent.infer({ X: next++ }))
    const other = new Load(rate / 10, () => once.infer({ X: next++ }))
    const attempts = () => attemptsOn(`127.0.0.1:${replicas.at(2).ports[protocol]}`)
    const note = (phase: string, from: number, to: number, pids: ReadonlyArray<number>) => {
      lines.push(`${protocol} ${phase}: ${load.between(from, to).line(pids)}`)
    }

    /** Waits until six seconds of the load are even within 10 %, at most a minute. */
    const expectEven = async (phase: string) => {
      for (let round = 0; ; round++) {
        const from = load.now
        await load.run(6_000)
        const differences = load
          .between(from, load.now)
          .shares(replicas.pids)
          .map((share) => Math.abs(share - 1 / 3))
        const difference = Math.max(...differences)
        if (difference > 0.1 / 3 && round < 10) continue
        note(phase, from, load.now, replicas.pids)
        return expect(difference).toBeLessThan(0.1 / 3)
      }
    }

    await load.run(3_000)
    await expectEven("healthy")

    for (const { name, begin, end, loses } of disturbances) {
      const { pids } = replicas
      const began = load.now
      replicas.signal(2, begin)
      await load.run(2_000)
      const settled = load.now
      const before = attempts()
      await load.run(3_000)
      const sent = attempts() - before
      const after = load.now
      await end(replicas)
      await load.run(3_000)
      note(`${name}, first 2 s`, began, settled, pids)
      note(`${name}, then`, settled, after, pids)
      note(`${name}, afterwards`, after, load.now, replicas.pids)
      const { errors, count } = other.between(began, after)
      lines.push(`${protocol} ${name}, not idempotent: ${count} calls, ${errors.length} failed`, ...new Set(errors))
      // Requests that were under way at the replica.
      if (loses) for (const error of errors) expect(error).toMatch(/^Unavailable: the connection to .* was lost/)
      else expect(errors).toEqual([])
      // So that the replica is not in the 99th percentile, which is printed: pauses of a busy machine are in it, too.
      const { count: all } = load.between(settled, after)
      lines.push(`${protocol} ${name}, then: ${sent} attempts on it`)
      // On a machine that is too busy, the others are as slow.
      if (load.between(settled, after).percentile(50) < 40) expect(sent / all).toBeLessThan(0.01)
    }

    // A slow replica is forgiven by and by.
    await expectEven("healthy again")
    await Promise.all([load.end(), other.end()])
    expect(load.between(0, Infinity).errors).toEqual([])
  },
)

/**
 * One of the two that a case compares: a process that is measured, and its work. Either a server under a
 * load from here, or a process that does the work itself and is watched.
 */
import * as ClosedLoop from "@nereid/bench/internal/load/ClosedLoop"
import * as Lane from "@nereid/bench/internal/load/Lane"
import type { Target } from "@nereid/bench/internal/target/Load"
import type { Child } from "./Child.ts"
import * as Measured from "./Measured.ts"
import type { Commands, Work } from "./Reporter.ts"

export interface Side {
  /** CPU time of the measured process, in microseconds. */
  readonly cpu: () => Promise<number>
  /** Starts a CPU profile of it, or writes it; undefined for a program without this command. */
  readonly profile: ((input: Commands["profile"]["input"]) => Promise<null>) | undefined
  readonly run: (seconds: number) => Promise<Measured.Measured>
  /** CPU time of the opposite process, in microseconds. If that process is saturated, it determines the result. */
  readonly otherCpu: () => Promise<number>
}

/** A server, called from this process over the given number of connections. */
export const server = (child: Child, target: Target, connections: number, concurrency: number): Side => ({
  ...watched(child),
  ...load(target, connections, concurrency),
})

/** A server of another program. */
export const foreign = (
  { cpu }: Pick<Side, "cpu">,
  target: Target,
  connections: number,
  concurrency: number,
): Side => ({ cpu, profile: undefined, ...load(target, connections, concurrency) })

const watched = (child: Child): Pick<Side, "cpu" | "profile"> => ({
  cpu: async () => (await child.call("report")).cpu,
  profile: (input) => child.call("profile", input),
})

const load = (target: Target, connections: number, concurrency: number): Pick<Side, "run" | "otherCpu"> => ({
  run: async (seconds) => {
    const lanes = await Lane.openAll(target, connections)
    try {
      return Measured.of(await ClosedLoop.run(lanes, { concurrency, seconds }))
    } finally {
      for (const lane of lanes) lane.close()
    }
  },
  otherCpu: async () => {
    const { user, system } = process.threadCpuUsage()
    return user + system
  },
})

/** A process that generates its own work; `other` is the process that it calls, if any. */
export const worker = (child: Child, work: () => Omit<Work, "seconds">, other?: Child): Side => ({
  ...watched(child),
  run: (seconds) => child.call("run", { ...work(), seconds }),
  otherCpu: async () => (other === undefined ? 0 : (await other.call("report")).cpu),
})

/**
 * One of the two that a case compares: a process that is measured, and its work. Either a server under a
 * load from here, or a process that does the work itself and is watched.
 */
import * as ClosedLoop from "@nereid/bench/internal/load/ClosedLoop"
import * as Lane from "@nereid/bench/internal/load/Lane"
import type { Target } from "@nereid/bench/internal/target/Load"
import type { Child } from "./Child.ts"
import * as Measured from "./Measured.ts"
import type { Work } from "./Reporter.ts"

export interface Side {
  /** The process that is measured and profiled. */
  readonly child: Child
  readonly run: (seconds: number) => Promise<Measured.Measured>
  /** CPU time of the opposite process, in microseconds. If that process is saturated, it determines the result. */
  readonly otherCpu: () => Promise<number>
}

/** A server, called from this process over the given number of connections. */
export const server = (child: Child, target: Target, connections: number, concurrency: number): Side => ({
  child,
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
  child,
  run: (seconds) => child.call("run", { ...work(), seconds }),
  otherCpu: async () => (other === undefined ? 0 : (await other.call("report")).cpu),
})

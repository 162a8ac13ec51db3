/** CPU use of other programs while a case runs, to distinguish noise from results. */
import { cpus } from "node:os"
import type { Child } from "./Child.ts"

/**
 * Begins to watch; the function that comes back gives the cores that all but these, started since, kept busy on
 * average.
 */
export const watch = (): ((children: ReadonlyArray<Child>) => Promise<number>) => {
  const began = performance.now()
  const before = all()
  const { user, system } = process.cpuUsage()
  return async (children) => {
    const own = process.cpuUsage({ user, system })
    const reports = await Promise.all(children.map((child) => child.call("report")))
    const ownCpu = reports.reduce((sum, { cpu }) => sum + cpu, own.user + own.system) / 1000
    return Math.max(0, (all() - before - ownCpu) / (performance.now() - began))
  }
}

/** CPU time of everything that runs on the machine, in milliseconds. */
const all = (): number => cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0)

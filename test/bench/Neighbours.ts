/** What other programs took of the machine while the benchmark ran: without it nobody can tell noise from a result. */
import { cpus } from "node:os"
import type { Child } from "./Child.ts"

/** Begins to watch; the function that comes back gives the cores that the others kept busy on average since then. */
export const watch = async (children: ReadonlyArray<Child>): Promise<() => Promise<number>> => {
  const began = performance.now()
  const before = all() - (await ours(children))
  return async () => Math.max(0, (all() - (await ours(children)) - before) / (performance.now() - began))
}

/** CPU time of everything that runs on the machine, in milliseconds. */
const all = (): number => cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0)

const ours = async (children: ReadonlyArray<Child>): Promise<number> => {
  const { user, system } = process.cpuUsage()
  const reports = await Promise.all(children.map((child) => child.ask("report")))
  return reports.reduce((sum, { cpu }) => sum + cpu, user + system) / 1000
}

/** How busy the load itself is: near 1 it, and not the server, is the limit. */
import { type EventLoopUtilization, performance } from "node:perf_hooks"

export interface Usage {
  /** CPU time of the load's thread, including the kernel, as a share of the elapsed time. */
  readonly cpu: number
  /** Share of the time in which its event loop had something to do. */
  readonly busy: number
}

/** Begins to watch; the function that comes back says what has been since. */
export const watch = (): (() => Usage) => {
  const began = performance.now()
  const cpu = cpuUsage()
  const loop: EventLoopUtilization = performance.eventLoopUtilization()
  return () => {
    const { user, system } = cpuUsage()
    const used = (user + system - cpu.user - cpu.system) / 1000
    return { cpu: used / (performance.now() - began), busy: performance.eventLoopUtilization(loop).utilization }
  }
}

/** CPU time of the whole process, on Node versions without figures for threads. */
const cpuUsage = (): NodeJS.CpuUsage =>
  typeof process.threadCpuUsage === "function" ? process.threadCpuUsage() : process.cpuUsage()

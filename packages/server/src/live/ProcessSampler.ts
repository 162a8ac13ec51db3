/** Reads the process once per step: processors, memory, and the delays of the event loop. */
import { monitorEventLoopDelay } from "node:perf_hooks"
import type { ProcessStep } from "@nereid/dashboard/internal/live/LiveStep"

/** The part that Node knows. */
export type ProcessReading = Omit<ProcessStep, "connections" | "inFlight" | "held">

/** Time between two probes of the event loop, in milliseconds. */
const resolution = 10

export class ProcessSampler {
  readonly #delays = monitorEventLoopDelay({ resolution })
  #cpu = process.cpuUsage()

  constructor() {
    this.#delays.enable()
  }

  /** Returns the step since the last call, whose length is `nanos`. */
  read(nanos: number): ProcessReading {
    const cpu = process.cpuUsage()
    const { rss, heapUsed, external } = process.memoryUsage()
    const used = cpu.user + cpu.system - this.#cpu.user - this.#cpu.system
    this.#cpu = cpu
    const reading = {
      cpu: Math.round((used * 1e6) / nanos) / 1000,
      memory: rss,
      heap: heapUsed,
      buffers: external,
      delayMax: delay(this.#delays.max),
      delayP99: delay(this.#delays.percentile(99)),
    }
    this.#delays.reset()
    return reading
  }

  close(): void {
    this.#delays.disable()
  }
}

/** Node measures the time between two probes, which includes the resolution. Milliseconds with one decimal. */
const delay = (nanos: number): number =>
  Number.isFinite(nanos) ? Math.max(0, Math.round((nanos / 1e6 - resolution) * 10) / 10) : 0

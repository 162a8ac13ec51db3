/** Reads the process once per step: processors, memory, and the delays of the event loop. */
import type { ProcessStep } from "@nereid/dashboard/internal/live/LiveStep"
import { LoopDelays } from "./LoopDelays.ts"

/** The part that Node knows. */
export type ProcessReading = Omit<ProcessStep, "connections" | "inFlight" | "held">

export class ProcessSampler {
  readonly #delays = new LoopDelays()
  #cpu = process.cpuUsage()

  /** Returns the step since the last call, whose length is `nanos`. */
  read(nanos: number): ProcessReading {
    const cpu = process.cpuUsage()
    const { rss, heapUsed, external } = process.memoryUsage()
    const used = cpu.user + cpu.system - this.#cpu.user - this.#cpu.system
    this.#cpu = cpu
    const { max, p99 } = this.#delays.take()
    return {
      cpu: Math.round((used * 1e6) / nanos) / 1000,
      memory: rss,
      heap: heapUsed,
      buffers: external,
      delayMax: tenths(max),
      delayP99: tenths(p99),
    }
  }

  close(): void {
    this.#delays.close()
  }
}

const tenths = (millis: number): number => Math.round(millis * 10) / 10

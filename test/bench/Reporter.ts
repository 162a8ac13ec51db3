/**
 * The child's half of the talk between the benchmark and a server that it started: where it listens, and on each
 * question what it has used since it began. Child.ts is the parent's half.
 */
import { monitorEventLoopDelay } from "node:perf_hooks"
import type { RunningModel } from "@nereid/core/RunningModel"

export interface Ports {
  readonly http: number
  readonly grpc: number
}

/** `watch` reports too, and measures the delay of the event loop from then on: a timer that costs a little itself. */
export type Question = "report" | "watch"

export interface Report {
  /** CPU time of the process, all its threads, in microseconds. */
  readonly cpu: number
  /** 99th percentile since `watch`, in milliseconds: 0 without. */
  readonly delay: number
  readonly models: Readonly<Record<string, { readonly executions: number; readonly inferences: number }>>
}

/** Tells the parent the ports and answers it from then on; ends the process, as SIGTERM does, when the parent is gone. */
export const report = (ports: Ports, models: ReadonlyArray<RunningModel>): void => {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  process.on("message", (question: Question) => {
    const { user, system } = process.cpuUsage()
    const answer: Report = {
      cpu: user + system,
      delay: delay.count === 0 ? 0 : delay.percentile(99) / 1e6,
      models: Object.fromEntries(
        models.map(({ name, statistics: { executionCount, inferenceCount } }) => [
          name,
          { executions: executionCount, inferences: inferenceCount },
        ]),
      ),
    }
    if (question === "watch") {
      delay.reset()
      delay.enable()
    }
    process.send?.(answer)
  })
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"))
  process.send?.(ports)
}

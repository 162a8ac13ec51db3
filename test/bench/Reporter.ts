/**
 * The child's side of the protocol between the benchmark and a process that it started: the child sends its ports, and
 * the output of each command. Child.ts is the parent's side.
 */
import { writeFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { monitorEventLoopDelay } from "node:perf_hooks"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { Measured } from "./Measured.ts"

export interface Ports {
  readonly http: number
  readonly grpc: number
}

/** The commands, with their inputs and outputs. */
export interface Commands {
  readonly report: { readonly input?: undefined; readonly output: Report }
  /** A report, and from then on the delay of the event loop is measured: by a timer that costs a little itself. */
  readonly watch: { readonly input?: undefined; readonly output: Report }
  /** Only where the process was started with `--expose-gc`. */
  readonly memory: { readonly input?: undefined; readonly output: Memory }
  /** Starts a CPU profile of the main thread, or writes the one that was started into a file. */
  readonly profile: { readonly input: { readonly file: string } | "start"; readonly output: null }
  /** For a process that does the work itself instead of serving it. */
  readonly run: { readonly input: Work; readonly output: Measured }
}

export interface Work {
  readonly seconds: number
  /** Maximum calls in flight. */
  readonly concurrency: number
  /** Where a client's server is. */
  readonly port: number
  /** Of a batch, on average. */
  readonly rows: number
}

export interface Report {
  /** CPU time of the process, all its threads, in microseconds. */
  readonly cpu: number
  /** 99th percentile since `watch`, in milliseconds: 0 without. */
  readonly delay: number
  readonly models: Readonly<
    Record<string, { readonly executions: number; readonly inferences: number; readonly pending: number }>
  >
}

/** Bytes, after everything that is garbage was collected. */
export interface Memory {
  /** Of JavaScript's objects and of the buffers that they hold. */
  readonly heap: number
  /** Of the whole process, as the system counts it. */
  readonly resident: number
}

interface ReporterOptions {
  readonly ports?: Ports
  readonly models?: ReadonlyArray<RunningModel>
  readonly run?: (work: Work) => Promise<Measured>
}

/**
 * Sends the ports to the parent and handles its commands from then on; ends the process, as SIGTERM does, when the
 * parent exits.
 */
export const report = ({ ports = { http: 0, grpc: 0 }, models = [], run }: ReporterOptions): void => {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  const profiler = new Session()

  const used = (): Report => {
    const { user, system } = process.cpuUsage()
    return {
      cpu: user + system,
      delay: delay.count === 0 ? 0 : delay.percentile(99) / 1e6,
      models: Object.fromEntries(
        models.map(
          ({
            description: {
              name,
              statistics: { executionCount, inferenceCount },
            },
            life: { pending },
          }) => [name, { executions: executionCount, inferences: inferenceCount, pending: pending() }],
        ),
      ),
    }
  }

  const handlers: { readonly [K in keyof Commands]: (input: Commands[K]["input"]) => Promise<Commands[K]["output"]> } =
    {
      report: async () => used(),
      watch: async () => {
        const before = used()
        delay.reset()
        delay.enable()
        return before
      },
      memory: async () => {
        const { gc } = globalThis
        if (gc === undefined) throw new Error("There is no gc(). This is a bug of the benchmark.")
        // The second collection frees the memory that finalizers release.
        gc()
        await new Promise((resolve) => setTimeout(resolve, 100))
        gc()
        const { heapUsed, external, rss } = process.memoryUsage()
        return { heap: heapUsed + external, resident: rss }
      },
      profile: async (input) => {
        if (input === "start") {
          profiler.connect()
          await profiler.post("Profiler.enable")
          await profiler.post("Profiler.setSamplingInterval", { interval: 200 })
          await profiler.post("Profiler.start")
        } else {
          const { profile } = await profiler.post("Profiler.stop")
          profiler.disconnect()
          writeFileSync(input.file, JSON.stringify(profile))
        }
        return null
      },
      run: async (work) => {
        if (run === undefined) throw new Error("This process has nothing to run. This is a bug of the benchmark.")
        return run(work)
      },
    }

  const output = async <K extends keyof Commands>({ command, input }: CommandMessage<K>) =>
    process.send?.({ output: await handlers[command](input) })
  process.on("message", output)
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"))
  process.send?.({ output: ports })
}

export interface CommandMessage<K extends keyof Commands> {
  readonly command: K
  readonly input: Commands[K]["input"]
}

/**
 * The machine's processors and memory as gauges, looked at in intervals: utilization is that of the last interval, not
 * of the time since the last scrape. Not of the process or its container: as the protocol's dashboards have it.
 */
import { cpus, freemem, totalmem } from "node:os"
import { type Context, type Duration, Effect, Metric, Schedule, type Scope } from "effect"

/** Registers the metrics in the context's registry, and updates them until the scope closes. */
export const register = Effect.fnUntraced(function* (
  interval: Duration.Duration,
  registry: Context.Context<never>,
): Effect.fn.Return<void, never, Scope.Scope> {
  let before = processorTimes()
  const refresh = Effect.sync(() => {
    const now = processorTimes()
    const all = now.all - before.all
    utilization.updateUnsafe(all > 0 ? 1 - (now.idle - before.idle) / all : 0, registry)
    before = now
    memoryTotal.updateUnsafe(totalmem(), registry)
    memoryUsed.updateUnsafe(totalmem() - freemem(), registry)
  })
  yield* refresh
  yield* refresh.pipe(Effect.delay(interval), Effect.repeat(Schedule.forever), Effect.forkScoped)
})

const utilization = Metric.gauge("nv_cpu_utilization", {
  description: "CPU utilization, from 0 to 1",
})

const memoryTotal = Metric.gauge("nv_cpu_memory_total_bytes", { description: "Total memory, in bytes" })

const memoryUsed = Metric.gauge("nv_cpu_memory_used_bytes", { description: "Used memory, in bytes" })

/** Milliseconds, summed over processors, since some time in the past. */
const processorTimes = () => {
  let [idle, all] = [0, 0]
  for (const { times } of cpus()) {
    idle += times.idle
    all += times.user + times.nice + times.sys + times.idle + times.irq
  }
  return { idle, all }
}

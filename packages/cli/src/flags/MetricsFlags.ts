/** The flags of the metrics port, and the server's options that they are. */
import type { ServerOptions } from "@nereid/server/Server"
import { Result } from "effect"
import type { Command } from "effect/cli"
import * as FlagKind from "./FlagKind.ts"

type MetricsOptions = NonNullable<ServerOptions["metricsOptions"]>

const switches = new Map<string, (isOn: boolean) => MetricsOptions>([
  ["counter_latencies", (isOn) => ({ counterLatencies: isOn })],
  ["histogram_latencies", (isOn) => ({ histogramLatencies: isOn })],
  ["summary_latencies", (isOn) => ({ summaryLatencies: isOn })],
])

/** Parses quantiles with allowed errors, `0.5:0.05`. The errors have no effect; the actual error is at most 1 %. */
const parseQuantiles = (text: string): ReadonlyArray<number> | undefined => {
  const pairs = text.split(",").map((pair) => pair.split(":"))
  const isPart = (part: string | undefined) => part !== undefined && /^(0?\.\d+|[01](\.0*)?)$/.test(part)
  if (!pairs.every((pair) => pair.length <= 2 && pair.every(isPart))) return undefined
  return pairs.map(([quantile]) => Number(quantile))
}

const settings = [...[...switches.keys()].map((key) => `${key}=true|false`), "summary_quantiles=0.5:0.05,0.9:0.01"]

const parseSetting: FlagKind.Parse<MetricsOptions> = (text) => {
  const [key = "", value = ""] = text.split(/=(.*)/s)
  const asSwitch = switches.get(key)
  if (asSwitch !== undefined) return Result.map(FlagKind.parseBoolean(value), asSwitch)
  const quantiles = key === "summary_quantiles" ? parseQuantiles(value) : undefined
  return quantiles === undefined ? Result.fail(settings.join(", or ")) : Result.succeed({ summaryQuantiles: quantiles })
}

export const flags = {
  allow: FlagKind.boolean("allow-metrics", "Serve Prometheus metrics at /metrics", true),
  address: FlagKind.text("metrics-address", "address", "Address to listen on for metrics", "the HTTP address"),
  port: FlagKind.port("metrics-port", "metrics", 8002),
  cpu: FlagKind.boolean("allow-cpu-metrics", "Include metrics of the machine's CPU and memory", true),
  interval: FlagKind.integer(
    "metrics-interval-ms",
    "Interval between measurements of CPU and memory, in milliseconds",
    2000,
    {
      minimum: 1,
    },
  ),
  queueTarget: FlagKind.integer(
    "saturation-queue-target-ms",
    "Time in the queue at which nereid_saturation is 1, in milliseconds",
    100,
    { minimum: 1 },
  ),
  settings: FlagKind.collected(
    "metrics-config",
    { takes: "setting=value", description: `Metric setting: ${settings.join(", ")}; repeatable` },
    parseSetting,
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = (
  { allow, address, port, cpu, interval, queueTarget, settings }: Values,
  http: string,
): ServerOptions => ({
  metrics: allow && { host: address ?? http, port },
  metricsOptions: Object.assign({ cpu, interval, queueTarget }, ...settings),
})

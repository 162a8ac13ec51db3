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

/** `0.5:0.05,0.9:0.01`: quantiles with their allowed errors, of which ours stay within one per cent of the value. */
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
  allow: FlagKind.boolean("allow-metrics", "Whether to serve Prometheus' /metrics", true),
  address: FlagKind.text("metrics-address", "address", "Address for metrics to listen on (that of HTTP)"),
  port: FlagKind.port("metrics-port", "metrics", 8002),
  cpu: FlagKind.boolean("allow-cpu-metrics", "Whether the machine's processors and memory are in them", true),
  interval: FlagKind.integer("metrics-interval-ms", "How often processors and memory are looked at", 2000, {
    minimum: 1,
  }),
  settings: FlagKind.collected(
    "metrics-config",
    { takes: "setting=value", description: `What they tell: ${settings.join(", ")}; any number of times` },
    parseSetting,
  ),
}

type Values = Command.Command.Config.Infer<typeof flags>

export const options = ({ allow, address, port, cpu, interval, settings }: Values, http: string): ServerOptions => ({
  metrics: allow && { host: address ?? http, port },
  metricsOptions: Object.assign({ cpu, interval }, ...settings),
})

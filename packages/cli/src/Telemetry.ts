/**
 * Exports traces to a collector if OpenTelemetry's environment variables name one (`OTEL_EXPORTER_OTLP_ENDPOINT`).
 * Prometheus collects metrics, and flags configure the log.
 */
import { Effect, Layer } from "effect"
import { CliError } from "effect/cli"
import packageJson from "../package.json" with { type: "json" }

/** Serializations of OpenTelemetry, the default first. */
const traceProtocols = ["http/protobuf", "http/json"] as const

type Environment = Readonly<Record<string, string | undefined>>

const endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]

const protocols = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]

/**
 * `name` is the service's, unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` have one. Fails where a variable
 * makes no sense.
 */
export const layer = (
  name: string,
  environment: Environment,
): Effect.Effect<Layer.Layer<never>, CliError.UserError> => {
  // An empty variable counts as unset, as in OpenTelemetry.
  const env = Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : [[name, value]],
    ),
  )
  const given = endpoints.filter((variable) => variable in env)
  if (given.length === 0) return Effect.succeed(Layer.empty)
  const refuse = (variable: string, expected: string) => {
    const cause = `Invalid value for environment variable ${variable}: "${env[variable]}". Expected: ${expected}`
    return Effect.fail(new CliError.UserError({ cause }))
  }
  const wrong = given.find((variable) => !/^https?:$/.test(URL.parse(env[variable] ?? "")?.protocol ?? ""))
  if (wrong !== undefined) return refuse(wrong, "an http or https URL")
  const chosen = protocols.find((variable) => variable in env) ?? "OTEL_EXPORTER_OTLP_PROTOCOL"
  const protocol = traceProtocols.find((protocol) => protocol === (env[chosen] ?? "http/protobuf"))
  if (protocol === undefined) return refuse(chosen, traceProtocols.join(", "))
  const isNamed =
    "OTEL_SERVICE_NAME" in env || /(^|,)\s*service\.name\s*=\s*[^,\s]/.test(env["OTEL_RESOURCE_ATTRIBUTES"] ?? "")
  const resource = { serviceVersion: packageJson.version, ...(isNamed ? {} : { serviceName: name }) }
  // The default of OpenTelemetry's specification.
  const settings = { OTEL_TRACES_EXPORTER: "otlp", ...env }
  return Effect.promise(() => import("./TraceExport.ts")).pipe(
    Effect.map((TraceExport) => TraceExport.layer(protocol, resource, settings)),
  )
}

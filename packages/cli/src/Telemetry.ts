/**
 * Exports traces to a collector if OpenTelemetry's environment variables name one (`OTEL_EXPORTER_OTLP_ENDPOINT`).
 * Prometheus collects metrics, and flags configure the log.
 */
import { ConfigProvider, Effect, Layer } from "effect"
import { CliError } from "effect/cli"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import packageJson from "../package.json" with { type: "json" }

type Environment = Readonly<Record<string, string | undefined>>

const endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]

const protocols = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]

/** Serializations of OpenTelemetry, the default first. */
const serializations = {
  "http/protobuf": OtlpSerialization.layerProtobuf,
  "http/json": OtlpSerialization.layerJson,
}

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
  const known = Object.entries(serializations)
  const [, serialization] = known.find(([protocol]) => protocol === (env[chosen] ?? "http/protobuf")) ?? []
  if (serialization === undefined) return refuse(chosen, known.map(([protocol]) => protocol).join(", "))
  const isNamed =
    "OTEL_SERVICE_NAME" in env || /(^|,)\s*service\.name\s*=\s*[^,\s]/.test(env["OTEL_RESOURCE_ATTRIBUTES"] ?? "")
  const tracer = OtlpTracer.layerFromConfig({
    resource: { serviceVersion: packageJson.version, ...(isNamed ? {} : { serviceName: name }) },
  })
  // The default of OpenTelemetry's specification.
  const settings = { OTEL_TRACES_EXPORTER: "otlp", ...env }
  return Effect.succeed(
    tracer.pipe(
      Layer.provide([serialization, FetchHttpClient.layer]),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: settings }))),
    ),
  )
}

/**
 * Traces to a collector, by the environment variables of OpenTelemetry (`OTEL_EXPORTER_OTLP_ENDPOINT`); nothing where they name
 * none. Metrics are Prometheus' to fetch, and the log goes where its flags say.
 */
import { ConfigProvider, Effect, Layer } from "effect"
import { CliError } from "effect/cli"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"
import packageJson from "../package.json" with { type: "json" }

type Environment = Readonly<Record<string, string | undefined>>

const endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]

/** As OpenTelemetry specifies them, the first as the default. */
const serializations = {
  "http/protobuf": OtlpSerialization.layerProtobuf,
  "http/json": OtlpSerialization.layerJson,
}

/** `name` is the service's, unless `OTEL_SERVICE_NAME` is one. Fails where a variable makes no sense. */
export const layer = (
  name: string,
  environment: Environment,
): Effect.Effect<Layer.Layer<never>, CliError.UserError> => {
  const given = endpoints.filter((variable) => (environment[variable] ?? "") !== "")
  if (given.length === 0) return Effect.succeed(Layer.empty)
  const refuse = (variable: string, expected: string) => {
    const value = environment[variable]
    const cause = `Invalid value for environment variable ${variable}: "${value}". Expected: ${expected}`
    return Effect.fail(new CliError.UserError({ cause }))
  }
  const wrong = given.find((variable) => !/^https?:$/.test(URL.parse(environment[variable] ?? "")?.protocol ?? ""))
  if (wrong !== undefined) return refuse(wrong, "an http or https URL")
  const chosen =
    ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"].find(
      (variable) => (environment[variable] ?? "") !== "",
    ) ?? ""
  const protocols = Object.entries(serializations)
  const [, serialization] = protocols.find(([protocol]) => protocol === (environment[chosen] ?? "http/protobuf")) ?? []
  if (serialization === undefined) return refuse(chosen, protocols.map(([protocol]) => protocol).join(", "))
  const env = Object.fromEntries(
    // Its default in OpenTelemetry's specification.
    Object.entries({ OTEL_TRACES_EXPORTER: "otlp", ...environment }).flatMap(([name, value]) =>
      value === undefined || value === "" ? [] : [[name, value]],
    ),
  )
  const serviceName = environment["OTEL_SERVICE_NAME"] ?? name
  const tracer = OtlpTracer.layerFromConfig({ resource: { serviceName, serviceVersion: packageJson.version } })
  return Effect.succeed(
    tracer.pipe(
      Layer.provide([serialization, FetchHttpClient.layer]),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
    ),
  )
}

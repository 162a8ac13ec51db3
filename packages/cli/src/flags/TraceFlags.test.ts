/** Variables of OpenTelemetry in the OpenTelemetry mode of traces: flags go before them. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "./ServeCommand.fixture.ts"

const traced = (environment: Readonly<Record<string, string>>, ...settings: ReadonlyArray<string>) =>
  Effect.map(
    parse(
      ["mode=opentelemetry", ...settings].map((setting) => `--trace-config=${setting}`),
      environment,
    ),
    ({ options, errors }) => errors ?? options?.trace?.openTelemetry,
  )

it.effect("they set the receiver, its headers, the resource and the sizes", () =>
  Effect.gen(function* () {
    const environment = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318/",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20a, x = y",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=other,deployment.environment=test,broken",
      OTEL_SERVICE_NAME: "edge",
      OTEL_BSP_MAX_QUEUE_SIZE: "10",
      OTEL_BSP_SCHEDULE_DELAY: "20",
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "5",
    }
    const resource = { "service.name": "edge", "deployment.environment": "test" }
    const set = {
      url: "http://collector:4318/v1/traces",
      headers: { authorization: "Bearer a", x: "y" },
      resource,
      maxQueueSize: 10,
      scheduleDelay: 20,
      maxExportBatchSize: 5,
    }
    expect(yield* traced(environment)).toEqual(set)
    const flags = ["opentelemetry,url=http://a/b", "opentelemetry,resource=service.name=flag"]
    expect(yield* traced(environment, ...flags)).toEqual({
      ...set,
      url: "http://a/b",
      resource: { ...resource, "service.name": "flag" },
    })
    const traces = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c/traces", OTEL_SERVICE_NAME: "" }
    expect(yield* traced({ ...environment, ...traces })).toMatchObject({
      url: "http://c/traces",
      resource: { "service.name": "other" },
    })
    expect(yield* traced({})).toEqual({ resource: {} })
  }),
)

it.effect("an invalid variable is refused by its name", () =>
  Effect.gen(function* () {
    expect(yield* traced({ OTEL_BSP_MAX_QUEUE_SIZE: "many" })).toEqual([
      'Invalid value for environment variable OTEL_BSP_MAX_QUEUE_SIZE: "many". Expected: an integer from 1 to 1000000',
    ])
    const expected = "Expected: an http or https URL"
    expect(yield* traced({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" })).toEqual([
      `Invalid value for environment variable OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318". ${expected}`,
    ])
    expect(yield* traced({ OTEL_EXPORTER_OTLP_HEADERS: "secret=%zz" })).toEqual([
      'Invalid value for environment variable OTEL_EXPORTER_OTLP_HEADERS: "…". Expected: key=value,…, percent-encoded',
    ])
    expect(yield* traced({ OTEL_RESOURCE_ATTRIBUTES: "a=%zz" })).toEqual([
      'Invalid value for environment variable OTEL_RESOURCE_ATTRIBUTES: "a=%zz". Expected: key=value,…, percent-encoded',
    ])
  }),
)

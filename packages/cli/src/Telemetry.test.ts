import { once } from "node:events"
import { createServer } from "node:http"
import { json } from "node:stream/consumers"
import { assert, expect, it } from "@effect/vitest"
import { Effect, Layer, Tracer } from "effect"
import * as Telemetry from "./Telemetry.ts"

it.live.each([
  ["models", {}],
  ["models", { OTEL_SERVICE_NAME: "", OTEL_RESOURCE_ATTRIBUTES: "service.name=" }],
  ["edge", { OTEL_SERVICE_NAME: "edge", OTEL_RESOURCE_ATTRIBUTES: "service.name=other" }],
  ["edge", { OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=test, service.name=edge" }],
] as const)("spans go where the variables say, in the name that they say: %s by %j", ([name, variables]) =>
  Effect.gen(function* () {
    const received: Array<unknown> = []
    const collector = createServer(async (request, response) => {
      received.push([request.url, await json(request)])
      response.end()
    }).listen(0, "127.0.0.1")
    yield* Effect.promise(() => once(collector, "listening"))
    const address = collector.address()
    assert(typeof address === "object" && address !== null)
    const layer = yield* Telemetry.layer("models", {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${address.port}`,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_SERVICE_NAME: undefined,
      ...variables,
    })
    yield* Effect.provide(Effect.withSpan(Effect.void, "a request"), layer)
    collector.close()
    expect(received).toMatchObject([
      [
        "/v1/traces",
        {
          resourceSpans: [
            {
              resource: {
                attributes: expect.arrayContaining([{ key: "service.name", value: { stringValue: name } }]),
              },
              scopeSpans: [{ spans: [{ name: "a request" }] }],
            },
          ],
        },
      ],
    ])
  }),
)

it.effect("there is no tracer without variables; invalid variables are refused by name", () =>
  Effect.gen(function* () {
    for (const environment of [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: "" }, { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }]) {
      const context = yield* Layer.build(yield* Telemetry.layer("models", environment))
      expect(context.mapUnsafe.has(Tracer.TracerKey)).toBe(false)
    }
    const refused = Effect.fnUntraced(function* (environment: Readonly<Record<string, string>>) {
      return (yield* Effect.flip(Telemetry.layer("models", environment))).message
    })
    expect(yield* refused({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" })).toBe(
      'Invalid value for environment variable OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318". Expected: an http or https URL',
    )
    const endpoint = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318/v1/traces" }
    expect(yield* refused({ ...endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" })).toBe(
      'Invalid value for environment variable OTEL_EXPORTER_OTLP_PROTOCOL: "grpc". Expected: http/protobuf, http/json',
    )
  }),
)

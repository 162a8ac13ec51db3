/** Exports traces over HTTP. A separate module, because most servers export none and need not load an HTTP client. */
import { ConfigProvider, Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import * as OtlpTracer from "effect/observability/OtlpTracer"

const serializations = {
  "http/protobuf": OtlpSerialization.layerProtobuf,
  "http/json": OtlpSerialization.layerJson,
}

/** `env`: the variables of OpenTelemetry. */
export const layer = (
  protocol: keyof typeof serializations,
  resource: { readonly serviceVersion: string; readonly serviceName?: string },
  env: Readonly<Record<string, string>>,
): Layer.Layer<never> =>
  OtlpTracer.layerFromConfig({ resource }).pipe(
    Layer.provide([serializations[protocol], FetchHttpClient.layer]),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...env } }))),
  )

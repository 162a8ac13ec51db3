/**
 * OpenTelemetry's environment variables as options of the OpenTelemetry mode of traces. Telemetry.ts reads them for the
 * spans of the server's own tracer.
 */
import type { ServerOptions } from "@nereid/server/Server"
import { Effect, Result } from "effect"
import { CliError } from "effect/cli"

type OpenTelemetry = NonNullable<NonNullable<ServerOptions["trace"]>["openTelemetry"]>

export type Environment = Readonly<Record<string, string | undefined>>

type Read<A> = (text: string) => Result.Result<A, string>

/** Fails where a variable makes no sense. An empty variable counts as unset, as in OpenTelemetry. */
export const options: (environment: Environment) => Effect.Effect<OpenTelemetry, CliError.UserError> =
  Effect.fnUntraced(function* (environment: Environment): Effect.fn.Return<OpenTelemetry, CliError.UserError> {
    /** The value of the first of these variables that is set. */
    const get = <A>(
      read: Read<A>,
      ...names: ReadonlyArray<string>
    ): Effect.Effect<A | undefined, CliError.UserError> => {
      const name = names.find((name) => (environment[name] ?? "") !== "")
      const text = name && environment[name]
      if (!text) return Effect.succeed(undefined)
      // Headers may have secrets.
      const shown = name.endsWith("HEADERS") ? "…" : text
      const refusal = (expected: string) =>
        new CliError.UserError({
          cause: `Invalid value for environment variable ${name}: "${shown}". Expected: ${expected}`,
        })
      return Effect.fromResult(Result.mapError(read(text), refusal))
    }
    const all = yield* get(url, "OTEL_EXPORTER_OTLP_ENDPOINT")
    const traces = yield* get(url, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    const headers = yield* get(pairs, "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
    const attributes = yield* get(pairs, "OTEL_RESOURCE_ATTRIBUTES")
    const service = yield* get((text) => Result.succeed({ "service.name": text }), "OTEL_SERVICE_NAME")
    const maxQueueSize = yield* get(integer, "OTEL_BSP_MAX_QUEUE_SIZE")
    const scheduleDelay = yield* get(integer, "OTEL_BSP_SCHEDULE_DELAY")
    const maxExportBatchSize = yield* get(integer, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE")
    const target = traces ?? all?.replace(/\/*$/, "/v1/traces")
    return {
      ...(target !== undefined && { url: target }),
      ...(headers !== undefined && { headers }),
      ...((attributes ?? service) !== undefined && { resource: { ...attributes, ...service } }),
      ...(maxQueueSize !== undefined && { maxQueueSize }),
      ...(scheduleDelay !== undefined && { scheduleDelay }),
      ...(maxExportBatchSize !== undefined && { maxExportBatchSize }),
    }
  })

const url: Read<string> = (text) =>
  /^https?:$/.test(URL.parse(text)?.protocol ?? "") ? Result.succeed(text) : Result.fail("an http or https URL")

const maximum = 1_000_000

const integer: Read<number> = (text) => {
  const value = Number(text)
  return Number.isSafeInteger(value) && value >= 1 && value <= maximum
    ? Result.succeed(value)
    : Result.fail(`an integer from 1 to ${maximum}`)
}

/** Entries without a key or a `=` are left out, as in OpenTelemetry. */
const pairs: Read<Record<string, string>> = (text) => {
  const entries = text.split(",").flatMap((pair) => {
    const [, key = "", value = ""] = /^\s*([^=]+?)\s*=\s*(.*?)\s*$/s.exec(pair) ?? []
    return key === "" ? [] : [[key, value] as const]
  })
  return Result.try({
    try: () => Object.fromEntries(entries.map((pair) => pair.map(decodeURIComponent))),
    catch: () => "key=value,…, percent-encoded",
  })
}

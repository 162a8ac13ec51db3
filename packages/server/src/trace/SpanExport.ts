/**
 * Sends spans to a receiver over OTLP/HTTP as JSON, in batches, as OpenTelemetry's batch span processor does. Spans
 * beyond the queue are dropped. Tracing.ts loads this module only in the OpenTelemetry mode.
 *
 *   spans ─► queue, at most maxQueueSize ─► every scheduleDelay, or a full batch ─► POST, one at a time
 */
import { Cause, Effect, Fiber, Latch, type Scope } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as OtlpResource from "effect/observability/OtlpResource"
import * as OtlpSerialization from "effect/observability/OtlpSerialization"
import { type OpenTelemetrySettings, withoutUser } from "./OpenTelemetrySettings.ts"
import type { OtlpSpan } from "./TraceSpans.ts"

/** Limits on one request to the receiver with its retries, and on the last requests of a stop. */
const exportTimeout = "10 seconds"
const stopTimeout = "3 seconds"

const retries = 2

export interface SpanExport {
  /** Queues the spans, or drops those that have no room. */
  readonly push: (spans: ReadonlyArray<OtlpSpan>) => void
}

/** Exports until the scope closes, which exports the rest. `version` is that of the server. */
export const make = Effect.fnUntraced(function* (
  settings: OpenTelemetrySettings,
  version: string,
): Effect.fn.Return<SpanExport, never, Scope.Scope> {
  const { url, headers, resource: attributes, maxQueueSize, maxExportBatchSize } = settings
  const send = yield* Effect.provide(sender, [FetchHttpClient.layer, OtlpSerialization.layerJson])
  const resource = OtlpResource.make({ attributes })
  const scope = { name: "nereid", version }
  const delay = Effect.sleep(settings.scheduleDelay)
  const queue: Array<OtlpSpan> = []
  const wake = Latch.makeUnsafe(false)
  const context = yield* Effect.context<never>()
  let isClosing = false
  let hasDropped = false
  let hasFailed = false

  const exportBatch = Effect.suspend(() => {
    const spans = queue.splice(0, maxExportBatchSize)
    return send(HttpClientRequest.post(url, { headers }), {
      resourceSpans: [{ resource, scopeSpans: [{ scope, spans }] }],
    })
  }).pipe(
    Effect.matchCauseEffect({
      onSuccess: () => Effect.sync(() => (hasFailed = false)),
      onFailure: (cause) => {
        if (hasFailed || Cause.hasInterrupts(cause)) return Effect.void
        hasFailed = true
        const reason = Cause.prettyErrors(cause).map(({ message }) => message)
        return Effect.logWarning(`Traces cannot be sent to ${withoutUser(url)}: ${reason.join("; ")}`)
      },
    }),
  )
  const exportAll = Effect.whileLoop({ while: () => queue.length > 0, body: () => exportBatch, step: () => {} })
  const run = Effect.raceFirst(delay, wake.await).pipe(
    Effect.andThen(Effect.sync(() => void (isClosing || wake.closeUnsafe()))),
    Effect.andThen(exportAll),
    Effect.repeat({ until: () => isClosing }),
  )
  const running = yield* Effect.forkScoped(run, { startImmediately: true })
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isClosing = true
      wake.openUnsafe()
      return Effect.ignore(Effect.raceFirst(Fiber.await(running), Effect.sleep(stopTimeout)))
    }),
  )
  return {
    push: (spans) => {
      for (const span of spans) {
        if (queue.length < maxQueueSize) queue.push(span)
        else if (!hasDropped) {
          hasDropped = true
          const warning = Effect.logWarning(
            `More than ${maxQueueSize} spans wait for export; further spans are dropped`,
          )
          Effect.runForkWith(context)(warning)
        }
      }
      if (queue.length >= maxExportBatchSize) wake.openUnsafe()
    },
  }
})

/** Sends one request, without spans for itself. */
const sender = Effect.gen(function* () {
  const { traces } = yield* OtlpSerialization.OtlpSerialization
  const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient).pipe(
    HttpClient.retryTransient({ times: retries }),
  )
  return (request: HttpClientRequest.HttpClientRequest, data: Parameters<typeof traces>[0]) =>
    client.execute(HttpClientRequest.setBody(request, traces(data))).pipe(
      Effect.flatMap(({ arrayBuffer }) => arrayBuffer),
      Effect.timeout(exportTimeout),
      Effect.withTracerEnabled(false),
    )
})

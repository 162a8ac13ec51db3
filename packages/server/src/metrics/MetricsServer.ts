/** The port that Prometheus scrapes: /metrics, and nothing else. */
import { Effect, type Scope } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
import { isClosed } from "../port/HttpExchange.ts"
import * as HttpListener from "../port/HttpListener.ts"
import { sendChunks, sendText } from "../port/HttpReply.ts"
import * as PrometheusMetrics from "./PrometheusMetrics.ts"
import type { ServeError } from "../error/ServeError.ts"

export interface MetricsServerOptions {
  readonly host: string
  /** Port to listen on; 0 picks a free port. */
  readonly port: number
  readonly metrics?: PrometheusMetrics.MetricsOptions | undefined
}

/** Connections of this port. The limit of the other ports does not count them, so a full server can be observed. */
const maxConnections = 256

export const make = Effect.fnUntraced(function* (
  gateway: Gateway,
  { host, port, metrics: options }: MetricsServerOptions,
): Effect.fn.Return<HttpListener.Address, ServeError, Scope.Scope> {
  const metrics = yield* PrometheusMetrics.make(gateway.models, options, gateway.memory)
  return yield* HttpListener.make(
    (request, response, guard) => {
      const [path = ""] = (request.url ?? "").split("?", 1)
      if (path !== "/metrics" && path !== "/metrics/") return sendText(response, 404, "Not Found")
      if (request.method !== "GET" && request.method !== "HEAD") {
        return sendText(response, 405, "Method Not Allowed", { allow: "GET, HEAD" })
      }
      const send = (text: string) => {
        if (isClosed(response)) return
        sendChunks(response, [Buffer.from(text)], { "content-type": "text/plain; charset=utf-8" })
      }
      const failed = (error: unknown) => {
        throw error
      }
      printer().then(
        ({ formatUnsafe }) => guard(() => send(formatUnsafe(metrics.current()))),
        (error: unknown) => guard(() => failed(error)),
      )
    },
    { name: "metrics", host, port, maxConnections, limits: gateway.limits },
  )
})

/** Imported with the first scrape: it brings the modules of an HTTP server, a tenth of all that a server loads. */
const printer = () => import("effect/observability/PrometheusMetrics")

/** The port that Prometheus scrapes: /metrics, and nothing else. */
import { Effect, type Scope } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
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
    (request, response) => {
      const [path = ""] = (request.url ?? "").split("?", 1)
      if (path !== "/metrics" && path !== "/metrics/") return sendText(response, 404, "Not Found")
      if (request.method !== "GET" && request.method !== "HEAD") {
        return sendText(response, 405, "Method Not Allowed", { allow: "GET, HEAD" })
      }
      sendChunks(response, [Buffer.from(metrics.text())], { "content-type": "text/plain; charset=utf-8" })
    },
    { name: "metrics", host, port, maxConnections, limits: gateway.limits },
  )
})

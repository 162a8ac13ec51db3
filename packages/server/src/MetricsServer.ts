/** The port that Prometheus scrapes: /metrics, and nothing else. */
import type { Effect, Scope } from "effect"
import type { Gateway } from "./Gateway.ts"
import * as HttpListener from "./HttpListener.ts"
import { sendChunks, sendText } from "./HttpReply.ts"
import * as PrometheusText from "./PrometheusText.ts"
import type { ServeError } from "./ServeError.ts"

export interface MetricsServerOptions {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
}

export const make = (
  gateway: Gateway,
  options: MetricsServerOptions,
): Effect.Effect<HttpListener.Address, ServeError, Scope.Scope> =>
  HttpListener.make(
    (request, response) => {
      const [path = ""] = (request.url ?? "").split("?", 1)
      if (path !== "/metrics" && path !== "/metrics/") return sendText(response, 404, "Not Found")
      if (request.method !== "GET") return sendText(response, 405, "Method Not Allowed", { allow: "GET" })
      const text = PrometheusText.write(gateway.models)
      sendChunks(response, [Buffer.from(text)], { "content-type": "text/plain; charset=utf-8" })
    },
    { name: "metrics", ...options },
  )

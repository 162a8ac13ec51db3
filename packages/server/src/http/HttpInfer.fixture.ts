/** Fixture of the tests of inference over HTTP: models behind a real socket, and a client. */
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request as httpRequest } from "node:http"
import { Effect, Layer } from "effect"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as Gateway from "../gateway/Gateway.ts"
import type { LateReading } from "../limit/LateReading.ts"
import * as HttpServer from "./HttpServer.ts"

/** Serves models that the layer provides. */
export const serve = Effect.fnUntraced(function* <S>(
  layer: Layer.Layer<S>,
  services: ReadonlyArray<Effect.Effect<{ readonly model: RunningModel }, never, S>>,
  options: Partial<HttpServer.HttpServerOptions> = {},
  lateReading?: LateReading,
) {
  const context = yield* Layer.build(layer)
  const models = yield* Effect.provideContext(Effect.all(services), context)
  const store = ModelStore.of(models.map(({ model }) => model))
  const gateway = Gateway.make(store, { id: "nereid", version: "0", ...(lateReading && { lateReading }) })
  return yield* HttpServer.make(gateway, { host: "127.0.0.1", port: 0, ...options })
})

export interface HttpReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Sends an inference request. An interrupt closes the connection. */
export const inferModel = (
  { port }: { readonly port: number },
  model: string,
  body: string | Uint8Array,
  headers: OutgoingHttpHeaders = {},
  route = "infer",
): Effect.Effect<HttpReply, Error> =>
  Effect.callback((resume) => {
    const request = httpRequest(
      { host: "127.0.0.1", port, path: `/v2/models/${model}/${route}`, method: "POST", headers },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("end", () =>
          resume(
            Effect.succeed({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks),
            }),
          ),
        )
      },
    )
    request.on("error", (error) => resume(Effect.fail(error)))
    request.end(body)
    return Effect.sync(() => request.destroy())
  })

export const json = (response: HttpReply): unknown => JSON.parse(response.body.toString())

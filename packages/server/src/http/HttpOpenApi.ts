/** GET /openapi.json: the document of OpenApiDocument.ts, with its entity tag, compressed if the client accepts it. */
import { Result } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
import type * as OpenApiDocument from "../openapi/OpenApiDocument.ts"
import { isClosed } from "../port/HttpExchange.ts"
import { sendChunks } from "../port/HttpReply.ts"
import * as EntityTag from "./EntityTag.ts"
import { single } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import type { Route } from "./HttpRoute.ts"

type Body = Result.Result<Uint8Array, Error>

export const path = "/openapi.json"

export const route = (gateway: Gateway, options: OpenApiDocument.OpenApiOptions): Route => {
  let loading: Promise<ReturnType<typeof OpenApiDocument.make>> | undefined
  // Most servers are never asked for it.
  const load = async () => (await import("../openapi/OpenApiDocument.ts")).make(gateway, options)
  const compressed = new WeakMap<OpenApiDocument.OpenApiDocument, Map<string, Promise<Body>>>()

  const compress = (whole: OpenApiDocument.OpenApiDocument, encoding: "gzip" | "deflate"): Promise<Body> => {
    const known = compressed.get(whole) ?? new Map<string, Promise<Body>>()
    compressed.set(whole, known)
    const found = known.get(encoding)
    if (found !== undefined) return found
    const made = new Promise<Body>((resolve) => HttpCompression.compress(encoding, [whole.bytes], resolve))
    known.set(encoding, made)
    return made
  }

  return {
    method: "GET",
    api: "metadata",
    path: /^\/openapi\.json$/,
    handle: ({ request, response, guard }) => {
      const send = (made: Result.Result<OpenApiDocument.OpenApiDocument, unknown>) => {
        if (isClosed(response)) return
        const whole = Result.getOrThrowWith(made, (error) => error)
        const encoding = HttpCompression.preferred(single(request.headers["accept-encoding"]))
        const etag = EntityTag.ofEncoding(whole.etag, encoding)
        const headers = { etag, "cache-control": "no-cache", vary: "Accept-Encoding" }
        if (EntityTag.matches(single(request.headers["if-none-match"]), etag)) {
          response.writeHead(304, headers)
          return void response.end()
        }
        const content = { ...headers, "content-type": "application/json" }
        if (encoding === "identity") return sendChunks(response, [whole.bytes], content)
        void compress(whole, encoding).then((body) =>
          guard(() => {
            if (!isClosed(response))
              sendChunks(response, [Result.getOrThrow(body)], { ...content, "content-encoding": encoding })
          }),
        )
      }
      const failed = (error: unknown) =>
        guard(() => {
          throw error
        })
      loading ??= load()
      loading.then((document) => document((made) => guard(() => send(made)))).catch(failed)
    },
  }
}

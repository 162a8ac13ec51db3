/** GET /openapi.json: the document of OpenApiDocument.ts, with its entity tag, compressed if the client accepts it. */
import { Result } from "effect"
import type { RestrictedApis } from "../gateway/RestrictedApis.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import * as OpenApiDocument from "../openapi/OpenApiDocument.ts"
import type { OwnRoute } from "../openapi/RoutePaths.ts"
import { isClosed } from "../port/HttpExchange.ts"
import { sendChunks } from "../port/HttpReply.ts"
import { single } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import type { Route } from "./HttpRoute.ts"

type Body = Result.Result<Uint8Array, Error>

export const path = "/openapi.json"

export const route = (gateway: Gateway, restrictedApis: RestrictedApis, routes: ReadonlyArray<OwnRoute>): Route => {
  const document = OpenApiDocument.make(gateway, { restrictedApis, routes })
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
    handle: ({ request, response, guard }) =>
      document((whole) =>
        guard(() => {
          if (isClosed(response)) return
          const encoding = HttpCompression.preferred(single(request.headers["accept-encoding"]))
          const etag = tagOf(whole, encoding)
          const headers = { etag, "cache-control": "no-cache", vary: "Accept-Encoding" }
          if (matches(single(request.headers["if-none-match"]), etag)) {
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
        }),
      ),
  }
}

/** Each encoding has its tag (RFC 9110, 8.8.3.3). */
const tagOf = ({ etag }: OpenApiDocument.OpenApiDocument, encoding: string): string =>
  encoding === "identity" ? etag : etag.replace(/"$/, `-${encoding}"`)

/** Whether a list of tags, weak or not, has this tag (RFC 9110, 13.1.2). */
const matches = (list: string | undefined, etag: string): boolean =>
  list !== undefined && (list.trim() === "*" || list.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag))

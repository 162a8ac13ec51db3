/**
 * Routes of the dashboard page: its files, below the path that the operator chose. The page calls the other routes. The
 * first request of a file reads it, and later ones send the same.
 */
import { Effect, Result } from "effect"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as PageFiles from "@nereid/dashboard/PageFiles"
import { ServeError } from "../error/ServeError.ts"
import type { DashboardStreams } from "../live/DashboardStreams.ts"
import { isClosed } from "../port/HttpExchange.ts"
import * as EntityTag from "./EntityTag.ts"
import { type HttpCall, single } from "./HttpCall.ts"
import * as HttpCompression from "./HttpCompression.ts"
import * as HttpLive from "./HttpLive.ts"
import type { Route } from "./HttpRoute.ts"

/** Whether the server has a page, and where. True: at `/`. */
export type Dashboard = boolean | { readonly path: `/${string}` }

/** The path of the page as the operator wrote it; undefined without a page. */
export const pathOf = (dashboard: Dashboard): string | undefined =>
  typeof dashboard === "boolean" ? (dashboard ? "/" : undefined) : dashboard.path

export interface HttpDashboard {
  readonly routes: ReadonlyArray<Route>
  /** Path of the page, with a slash at its end; undefined without a page. */
  readonly path: string | undefined
}

/** Makes the routes; none without a dashboard. */
export const make = Effect.fnUntraced(function* (
  dashboard: Dashboard,
  streams: DashboardStreams | undefined,
): Effect.fn.Return<HttpDashboard, ServeError> {
  const given = pathOf(dashboard)
  if (given === undefined) return { routes: [], path: undefined }
  const path = yield* Effect.fromResult(folderOf(given))
  const files = yield* Effect.tryPromise({
    try: () => PageFiles.paths(),
    catch: (cause) => new ServeError({ message: `the dashboard is not available: ${errorMessage(cause)}` }),
  })
  const routes = files.map((file) => route(file === "index.html" ? path : `${path}${file}`, sendFile(file)))
  const streamRoutes = streams === undefined ? [] : HttpLive.make(streams, path)
  // Without its last slash, the page would look for its files in the folder above.
  const redirects = path === "/" ? [] : [route(path.slice(0, -1), redirect(path))]
  return { routes: [...routes, ...streamRoutes, ...redirects], path }
})

/** The path with a slash at its end. */
const folderOf = (path: string): Result.Result<string, ServeError> => {
  const refuse = (reason: string) =>
    Result.fail(new ServeError({ message: `the path "${path}" of the dashboard ${reason}` }))
  if (!/^(?:\/[\w.~-]+)*\/?$/.test(path) || !path.startsWith("/")) return refuse('must be like "/dashboard"')
  if (/^\/v2(\/|$)/.test(path)) return refuse("is reserved by the protocol")
  return Result.succeed(path.endsWith("/") ? path : `${path}/`)
}

const route = (path: string, handle: Route["handle"]): Route => ({
  method: "GET",
  api: undefined,
  path: new RegExp(`^${path.replaceAll(/[.~-]/g, "\\$&")}$`),
  handle,
})

const encodings: ReadonlyArray<HttpCompression.Encoding> = ["identity", "gzip"]

const sendFile = (path: string): Route["handle"] => {
  let reading: Promise<PageFiles.PageFile> | undefined
  const fail = (error: unknown) => {
    // The next request tries again.
    reading = undefined
    throw error
  }
  return (call) => {
    reading ??= PageFiles.readOne(path)
    void reading.then(
      (file) => call.guard(() => send(file, call)),
      (error: unknown) => call.guard(() => fail(error)),
    )
  }
}

const send = (
  { body, compressed, contentType, etag: tag, immutable }: PageFiles.PageFile,
  { request, response }: HttpCall,
): void => {
  if (isClosed(response)) return
  const encoding = HttpCompression.preferred(single(request.headers["accept-encoding"]), encodings)
  const etag = EntityTag.ofEncoding(tag, encoding)
  const headers = {
    ...PageFiles.headers,
    etag,
    "cache-control": immutable ? "public, max-age=31536000, immutable" : "no-cache",
    vary: "accept-encoding",
  }
  if (EntityTag.matches(single(request.headers["if-none-match"]), etag)) {
    response.writeHead(304, headers)
    return void response.end()
  }
  const sent = encoding === "gzip" ? compressed : body
  response.writeHead(200, {
    ...headers,
    "content-type": contentType,
    "content-length": sent.length,
    ...(encoding === "gzip" && { "content-encoding": encoding }),
  })
  response.end(sent)
}

const redirect =
  (path: string) =>
  ({ response }: HttpCall): void => {
    response.writeHead(308, { location: path, "content-length": 0 })
    response.end()
  }

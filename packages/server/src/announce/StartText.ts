/**
 * The text that a server prints when it is ready: tables of its models and routes, its addresses, and an example
 * request for each ready model and each route.
 */
import type { IndexEntry } from "@nereid/core/internal/lifecycle/ModelStore"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type { ModelsFound } from "../error/ServeError.ts"
import type { OwnRoute } from "../openapi/RoutePaths.ts"
import type { Address } from "../port/HttpListener.ts"
import type { Tls } from "../port/Tls.ts"
import { modelCurl, routeCurl } from "./Curl.ts"
import { modelTable, runningModel } from "./ModelTable.ts"
import { table } from "./Table.ts"

/** A server that is ready. */
export interface StartedServer extends ModelsFound {
  readonly http: Address | undefined
  readonly grpc: Address | undefined
  readonly port: Address | undefined
  readonly metrics: Address | undefined
  /** Routes beside those of the protocol. */
  readonly routes: ReadonlyArray<OwnRoute>
  /** Path of the page for browsers; undefined for a server without one. */
  readonly dashboard?: string | undefined
  /** Certificates of the ports; a port with some speaks TLS. */
  readonly tls: { readonly http?: Tls; readonly port?: Tls }
}

export const startText = (server: StartedServer): string => {
  const curlUrl = httpUrl(server)
  const requests = curlUrl === undefined ? [] : exampleRequests(server, curlUrl)
  const examples = requests.length > 0 ? ["", "Try:", ...requests.map((request) => `  ${request}`)] : []
  return [startSummary(server), ...examples].join("\n")
}

/** Returns the text without the example requests. */
export const startSummary = (server: StartedServer): string => {
  const { http, grpc, port, metrics, routes, dashboard } = server
  const lines = [modelTable(server), ""]
  const reasons = server.index().flatMap(reasonOf)
  if (reasons.length > 0) lines.push(...reasons, "")
  if (routes.length > 0 && (http ?? port) !== undefined) lines.push(routeTable(routes), "")
  if (grpc !== undefined) lines.push(`Started GRPCInferenceService at ${grpc.host}:${grpc.port}`)
  if (http !== undefined) lines.push(`Started HTTPService at ${http.host}:${http.port}`)
  if (port !== undefined) lines.push(`Started HTTPService and GRPCInferenceService at ${port.host}:${port.port}`)
  if (metrics !== undefined) lines.push(`Started Metrics Service at ${metrics.host}:${metrics.port}`)
  const base = httpUrl(server)
  if (dashboard !== undefined && base !== undefined) lines.push(`Started the dashboard at ${base}${dashboard}`)
  return lines.join("\n")
}

/** Where HTTP requests go. */
const httpUrl = ({ http, port, tls }: StartedServer): string | undefined =>
  http === undefined ? port && url(port, tls.port) : url(http, tls.http)

const exampleRequests = ({ index, models, routes }: StartedServer, url: string): ReadonlyArray<string> => {
  const ready = newest(index().flatMap((entry) => (entry.state === "READY" ? (runningModel(entry, models) ?? []) : [])))
  const ofRoutes = routes.flatMap((route) => {
    const { name } = route.sample.definition
    const model = ready.find(({ description }) => description.name === name)
    return model === undefined ? [] : (routeCurl(route, model, url) ?? [])
  })
  return [...ready.flatMap((model) => modelCurl(model, url) ?? []), ...ofRoutes]
}

/** Returns the version of each name that answers requests without a version. */
const newest = (models: ReadonlyArray<RunningModel>): ReadonlyArray<RunningModel> =>
  models.filter(
    ({ description: { name, version } }) =>
      !models.some((other) => other.description.name === name && Number(other.description.version) > Number(version)),
  )

const routeTable = (routes: ReadonlyArray<OwnRoute>): string =>
  table(
    ["ROUTE", "MODEL"],
    [
      ...routes.map(({ path, sample }) => [`POST ${path}`, sample.definition.name]),
      ["GET /openapi.json", "describes all routes"],
    ],
  )

const url = ({ host, port }: Address, tls: Tls | undefined): string => {
  const everywhere = host === "0.0.0.0" || host === "::"
  const name = everywhere ? "localhost" : host.includes(":") ? `[${host}]` : host
  return `${tls === undefined ? "http" : "https"}://${name}:${port}`
}

/** Below the table, which long texts would make unreadable. */
const reasonOf = ({ name, version, state, reason = "" }: IndexEntry): ReadonlyArray<string> =>
  reason === "" ? [] : [`${name}${version === undefined ? "" : ` version ${version}`} is ${state}: ${reason}`]

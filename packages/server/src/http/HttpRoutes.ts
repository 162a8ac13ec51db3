/**
 * The paths of the v2 protocol over HTTP, as a table over the gateway, and behind them those of the server's owner. Paths are matched as they came, without a slash at
 * the end; only a model's name is percent-decoded, because clients quote it.
 */
import { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { CallRecords } from "../log/CallRecord.ts"
import * as CudaSharedMemory from "../memory/CudaSharedMemory.ts"
import type { Gateway } from "../gateway/Gateway.ts"
import type { InferOptions } from "./HttpCall.ts"
import { generate, generateStream } from "./HttpGenerate.ts"
import * as HttpInfer from "./HttpInfer.ts"
import type { GuardedHandler } from "../port/DefectGuard.ts"
import type { Response } from "../port/HttpExchange.ts"
import * as HttpEffect from "./HttpEffect.ts"
import { sendEmpty, sendError, sendJson, sendResult, sendText } from "../port/HttpReply.ts"
import type { Route } from "./HttpRoute.ts"
import * as HttpModelRoutes from "./HttpModelRoutes.ts"
import * as HttpSettings from "./HttpSettings.ts"
import * as HttpSharedMemory from "./HttpSharedMemory.ts"
import * as ModelConfiguration from "../gateway/ModelConfiguration.ts"
import * as ModelStatistics from "../gateway/StatisticsMessage.ts"
import type { Guard as ApiGuard, RestrictedApis } from "../gateway/RestrictedApis.ts"
import * as Recent from "./Recent.ts"
import type { Region } from "../memory/SharedMemory.ts"

const model = "/v2/models/(?<name>[^/]+)(?:/versions/(?<version>[0-9]+))?"
/** Its name stands where a model's does. */
const region = "(?:/region/(?<name>[^/]+))?"

export interface RoutesOptions extends InferOptions {
  readonly restrictedApis: RestrictedApis
  readonly records: CallRecords
  readonly modelRoutes: ReadonlyArray<HttpModelRoutes.ModelRoute>
}

export const make = (gateway: Gateway, options: RoutesOptions): GuardedHandler => {
  const routes: ReadonlyArray<Route> = [
    {
      method: "POST",
      api: "inference",
      path: new RegExp(`^${model}/infer$`),
      answer: HttpInfer.make(gateway, options),
    },
    {
      method: "POST",
      api: "inference",
      path: new RegExp(`^${model}/generate$`),
      answer: (call) => generate(gateway, call, options),
    },
    {
      method: "POST",
      api: "inference",
      path: new RegExp(`^${model}/generate_stream$`),
      answer: (call) => generateStream(gateway, call, options),
    },
    {
      method: "GET",
      api: "health",
      path: /^\/v2\/health\/live$/,
      answer: ({ response }) => sendEmpty(response, gateway.isLive() ? 200 : 400),
    },
    {
      method: "GET",
      api: "health",
      path: /^\/v2\/health\/ready$/,
      answer: ({ response }) => {
        if (gateway.stopping.aborted) sendText(response, 503, "Server exiting")
        else sendEmpty(response, gateway.isReady() ? 200 : 400)
      },
    },
    {
      method: "GET",
      api: "metadata",
      path: /^\/v2$/,
      answer: ({ response }) => sendJson(response, 200, gateway.metadata),
    },
    {
      method: "GET",
      api: "health",
      path: new RegExp(`^${model}/ready$`),
      answer: ({ response, guard, model: { name, version } }) => {
        HttpEffect.answer({ guard }, gateway.modelReady(name, version), (ready) => {
          if (Result.isFailure(ready)) sendError(response, ready.failure)
          else if (ready.success) sendEmpty(response, 200)
          else sendText(response, 400, "Model version not ready")
        })
      },
    },
    {
      method: "GET",
      api: "model-config",
      path: new RegExp(`^${model}/config$`),
      answer: ({ response, model: { name, version } }) =>
        sendResult(response, Result.map(gateway.modelConfiguration(name, version), ModelConfiguration.json)),
    },
    {
      method: "GET",
      api: "statistics",
      // Of all models, also where one is called "stats": before the route of its metadata.
      path: new RegExp(`^(?:/v2/models|${model})/stats$`),
      answer: ({ response, model: { name, version } }) =>
        sendResult(response, Result.map(gateway.modelStatistics(name, version), ModelStatistics.json)),
    },
    {
      method: "GET",
      api: "metadata",
      path: new RegExp(`^${model}$`),
      answer: ({ response, model: { name, version } }) => sendResult(response, gateway.modelMetadata(name, version)),
    },
    {
      method: "GET",
      api: "shared-memory",
      path: new RegExp(`^/v2/systemsharedmemory${region}/status$`),
      answer: ({ response, model: { name } }) =>
        sendResult(
          response,
          Result.map(gateway.sharedMemory.status(name), (regions) => regions.map(regionStatus)),
        ),
    },
    {
      method: "POST",
      api: "shared-memory",
      path: new RegExp(`^/v2/systemsharedmemory${region}/register$`),
      answer: (call) => HttpSharedMemory.register(gateway.sharedMemory, call, options.maxInputSize),
    },
    {
      method: "POST",
      api: "shared-memory",
      path: new RegExp(`^/v2/systemsharedmemory${region}/unregister$`),
      answer: ({ response, model: { name } }) => sendDone(response, gateway.sharedMemory.unregister(name)),
    },
    {
      method: "GET",
      api: "shared-memory",
      path: new RegExp(`^/v2/cudasharedmemory${region}/status$`),
      answer: ({ response, model: { name } }) => sendResult(response, CudaSharedMemory.status(name)),
    },
    {
      method: "POST",
      api: "shared-memory",
      path: new RegExp(`^/v2/cudasharedmemory${region}/register$`),
      answer: ({ response, model: { name } }) => sendDone(response, CudaSharedMemory.register(name)),
    },
    {
      method: "POST",
      api: "shared-memory",
      // There are none to forget.
      path: new RegExp(`^/v2/cudasharedmemory${region}/unregister$`),
      answer: ({ response }) => sendEmpty(response, 200),
    },
    ...HttpSettings.routes(gateway, options.maxInputSize),
    ...HttpModelRoutes.make(gateway, options, options.modelRoutes),
  ]

  const guarded = routes.map((route) => ({ ...route, apiGuard: options.restrictedApis(route.api) }))

  const match = (path: string): ReadonlyArray<Match> => {
    const matches: Array<Match> = []
    for (const route of guarded) {
      const groups = route.path.exec(path)
      if (groups === null) continue
      const { name = "", version = "", repository = "" } = groups.groups ?? {}
      const decoded = percentDecoded(name)
      if (decoded === undefined) break
      matches.push({ ...route, model: { name: decoded, version }, repository })
    }
    return matches
  }
  const matched = Recent.make(match, mostPaths)

  return (request, response, guard) => {
    const { url = "" } = request
    const query = url.indexOf("?")
    const path = query < 0 ? url : url.slice(0, query)
    const record = options.records.begin("HTTP")
    if (record !== undefined) response.on("close", () => record.end(`${request.method} ${path}`, outcome(response)))
    const matches = matched(path)
    const found = matches.find(({ method }) => method === request.method)
    if (found !== undefined) {
      const { apiGuard, answer, model, repository } = found
      if (apiGuard === undefined || apiGuard.permits(request.headers[apiGuard.header])) {
        return answer({ request, response, guard, model, repository, record })
      }
      return sendText(response, 403, apiGuard.refusal)
    }
    if (matches.length === 0) return sendText(response, 404, "Not Found")
    const allow = [...new Set(matches.map(({ method }) => method))].join(", ")
    sendText(response, 405, "Method Not Allowed", { allow })
  }
}

/** A route for a path, with what that names. */
interface Match extends Route {
  readonly apiGuard: ApiGuard | undefined
  readonly model: { readonly name: string; readonly version: string }
  readonly repository: string
}

/** Paths whose routes are remembered: callers ask for few of them again and again. */
const mostPaths = 256

const sendDone = (response: Response, result: Result.Result<void, InferenceError>): void => {
  if (Result.isFailure(result)) sendError(response, result.failure)
  else sendEmpty(response, 200)
}

const regionStatus = ({ name, key, offset, byteSize }: Region) => ({ name, key, offset, byte_size: byteSize })

const outcome = (response: Response): string =>
  response.headersSent ? String(response.statusCode) : "the caller is gone"

const percentDecoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

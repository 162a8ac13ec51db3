/**
 * The paths of the v2 protocol over HTTP, as a table over the gateway. The routes of the server's owner come last.
 * HttpRouter.ts matches paths.
 */
import { Result } from "effect"
import type { Gateway } from "../gateway/Gateway.ts"
import type { RestrictedApis } from "../gateway/RestrictedApis.ts"
import type { OwnRoute } from "../openapi/RoutePaths.ts"
import type { InferOptions } from "./HttpCall.ts"
import { generate, generateStream } from "./HttpGenerate.ts"
import * as HttpInfer from "./HttpInfer.ts"
import * as HttpEffect from "./HttpEffect.ts"
import { sendEmpty, sendError, sendJson, sendResult, sendText } from "../port/HttpReply.ts"
import type { Route } from "./HttpRoute.ts"
import * as HttpModelRoutes from "./HttpModelRoutes.ts"
import * as HttpOpenApi from "./HttpOpenApi.ts"
import * as HttpSequences from "./HttpSequences.ts"
import * as HttpSettings from "./HttpSettings.ts"
import * as HttpSharedMemory from "./HttpSharedMemory.ts"
import * as ModelConfiguration from "../gateway/ModelConfiguration.ts"
import * as ModelStatistics from "../gateway/StatisticsMessage.ts"

const model = "/v2/models/(?<name>[^/]+)(?:/versions/(?<version>[0-9]+))?"

export interface RoutesOptions extends InferOptions {
  readonly modelRoutes: ReadonlyArray<OwnRoute>
  readonly restrictedApis: RestrictedApis
  /** Path of the page whose streams the server has, with a slash at its end. */
  readonly page?: string | undefined
}

/** All routes. The first matching route handles a request. */
export const make = (gateway: Gateway, options: RoutesOptions): ReadonlyArray<Route> => [
  ...inference(gateway, options),
  ...health(gateway),
  ...information(gateway),
  ...HttpSharedMemory.routes(gateway.sharedMemory, options.maxInputSize),
  ...HttpSettings.routes(gateway, options.maxInputSize),
  ...HttpSequences.routes(gateway, options.maxInputSize),
  HttpOpenApi.route(gateway, { ...options, routes: options.modelRoutes }),
  ...HttpModelRoutes.make(gateway, options, options.modelRoutes),
]

const inference = (gateway: Gateway, options: InferOptions): ReadonlyArray<Route> => [
  {
    method: "POST",
    api: "inference",
    path: new RegExp(`^${model}/infer$`),
    handle: HttpInfer.make(gateway, options),
  },
  {
    method: "POST",
    api: "inference",
    path: new RegExp(`^${model}/generate$`),
    handle: (call) => generate(gateway, call, options),
  },
  {
    method: "POST",
    api: "inference",
    path: new RegExp(`^${model}/generate_stream$`),
    handle: (call) => generateStream(gateway, call, options),
  },
]

const health = (gateway: Gateway): ReadonlyArray<Route> => [
  {
    method: "GET",
    api: "health",
    path: /^\/v2\/health\/live$/,
    handle: ({ response }) => sendEmpty(response, gateway.isLive() ? 200 : 400),
  },
  {
    method: "GET",
    api: "health",
    path: /^\/v2\/health\/ready$/,
    handle: ({ response, guard }) => {
      if (gateway.stopping.aborted) return sendText(response, 503, "Server exiting")
      HttpEffect.respond({ guard }, gateway.serverReady, (ready) =>
        sendEmpty(response, Result.isSuccess(ready) && ready.success ? 200 : 400),
      )
    },
  },
  {
    method: "GET",
    api: "health",
    path: new RegExp(`^${model}/ready$`),
    handle: ({ response, guard, model: { name, version } }) => {
      HttpEffect.respond({ guard }, gateway.modelReady(name, version), (ready) => {
        if (Result.isFailure(ready)) sendError(response, ready.failure)
        else if (ready.success) sendEmpty(response, 200)
        else sendText(response, 400, "Model version not ready")
      })
    },
  },
]

const information = (gateway: Gateway): ReadonlyArray<Route> => [
  {
    method: "GET",
    api: "metadata",
    path: /^\/v2$/,
    handle: ({ response }) => sendJson(response, 200, gateway.metadata),
  },
  {
    method: "GET",
    api: "model-config",
    path: new RegExp(`^${model}/config$`),
    handle: ({ response, model: { name, version } }) =>
      sendResult(response, Result.map(gateway.modelConfiguration(name, version), ModelConfiguration.json)),
  },
  {
    method: "GET",
    api: "statistics",
    // Statistics of all models. Precedes the metadata route, which would match a model named "stats".
    path: new RegExp(`^(?:/v2/models|${model})/stats$`),
    handle: ({ response, model: { name, version } }) =>
      sendResult(response, Result.map(gateway.modelStatistics(name, version), ModelStatistics.json)),
  },
  {
    method: "GET",
    api: "metadata",
    path: new RegExp(`^${model}$`),
    handle: ({ response, model: { name, version } }) =>
      sendResult(
        response,
        Result.map(gateway.modelMetadata(name, version), ({ contract, ...metadata }) =>
          contract === undefined ? metadata : { ...metadata, contract: contract.document },
        ),
      ),
  },
]

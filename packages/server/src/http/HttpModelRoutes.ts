/**
 * Custom routes of the operator: a path for a model that takes one sample as plain JSON and responds with JSON.
 * JsonSample.ts defines the JSON.
 */
import { Result } from "effect"
import * as JsonSample from "@nereid/core/internal/openapi/JsonSample"
import type { Gateway } from "../gateway/Gateway.ts"
import { ServeError } from "../error/ServeError.ts"
import type { InferOptions } from "./HttpCall.ts"
import type { OwnRoute } from "../openapi/RoutePaths.ts"
import { type DocumentCodec, generate, generateStream } from "./HttpGenerate.ts"
import { sendError } from "../port/HttpReply.ts"
import * as HttpOpenApi from "./HttpOpenApi.ts"
import type { Route } from "./HttpRoute.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** Custom routes by method and path: `{ "POST /sentiment": Sentiment }`. Values are model classes. */
export interface ModelRoutes {
  readonly [route: `POST /${string}`]: { readonly definition: JsonSample.AnyDefinition }
}

/** Validates routes: a path must not be one of the protocol, and every field of a model must have a JSON form. */
export const check = (routes: ModelRoutes): Result.Result<ReadonlyArray<OwnRoute>, ServeError> => {
  const checked: Array<OwnRoute> = []
  for (const [route, { definition }] of Object.entries(routes)) {
    const refuse = (reason: string) => Result.fail(new ServeError({ message: `the route "${route}" ${reason}` }))
    const path = /^POST (\/[\w.~!$&'()*+,;=:@%/-]*)$/.exec(route)?.[1]
    if (path === undefined) return refuse(`must be POST and a path, such as "POST /${definition.name}"`)
    if (/^\/v2(\/|$)/.test(path) || path === HttpOpenApi.path)
      return refuse("is reserved by the protocol or the server")
    const sample = Result.try({
      try: () => JsonSample.make(definition),
      catch: (error) => errorMessage(error),
    })
    if (Result.isFailure(sample)) return refuse(`is not possible: ${sample.failure}`)
    checked.push({ path, sample: sample.success })
  }
  return Result.succeed(checked)
}

export const make = (gateway: Gateway, options: InferOptions, routes: ReadonlyArray<OwnRoute>): ReadonlyArray<Route> =>
  routes.map((route) => modelRoute(gateway, options, route))

const modelRoute = (gateway: Gateway, options: InferOptions, { path, sample }: OwnRoute): Route => {
  const { name, version } = sample.definition
  const codec: DocumentCodec = sample
  return {
    method: "POST",
    api: "inference",
    path: exactly(path),
    handle: (call) => {
      const running = gateway.model(name, version)
      if (Result.isFailure(running)) return sendError(call.response, running.failure)
      const generateRoute = running.success.calls.decoupled ? generateStream : generate
      generateRoute(gateway, { ...call, model: { name, version } }, options, codec)
    },
  }
}

const exactly = (path: string): RegExp => new RegExp(`^${path.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`)

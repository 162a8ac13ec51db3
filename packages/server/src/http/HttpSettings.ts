/**
 * Routes for settings of the server. The body of a request is a small JSON object or empty; the response is JSON.
 * RepositoryIndex.ts, LogSettings.ts and TraceSettings.ts define the settings.
 */
import { Effect, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import * as ControlDocument from "@nereid/core/internal/codec/json/ControlDocument"
import type { Control } from "@nereid/core/internal/lifecycle/ModelRepository"
import * as SettingsDocument from "@nereid/core/internal/codec/json/SettingsDocument"
import type { Gateway } from "../gateway/Gateway.ts"
import { collect } from "./HttpBody.ts"
import { sendEmpty, sendError, sendJson, sendResult } from "../port/HttpReply.ts"
import type { HttpCall } from "./HttpCall.ts"
import * as HttpEffect from "./HttpEffect.ts"
import type { Route } from "./HttpRoute.ts"
import * as LogSettings from "../log/LogSettings.ts"
import * as RepositoryIndex from "../gateway/RepositoryIndex.ts"
import * as TraceSettings from "../trace/TraceSettings.ts"

const repository = "/v2/repository(?:/(?<repository>[^/]+))?"

const traceSetting = /^\/v2(?:\/models\/(?<name>[^/]+))?\/trace\/setting$/

/** `maxInputSize`: the most bytes of a body that may hold files. */
export const routes = (gateway: Gateway, maxInputSize: number): ReadonlyArray<Route> => [
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${repository}/index$`),
    handle: (call) =>
      collect(call, maxBodySize, (body) =>
        call.guard(() => {
          const readyOnly = Result.flatMap(SettingsDocument.read(body), RepositoryIndex.readyOnly)
          const index = Effect.flatMap(Effect.fromResult(readyOnly), (isReadyOnly) =>
            gateway.repositoryIndex({ repository: call.repository, readyOnly: isReadyOnly }),
          )
          HttpEffect.respond(call, index, (result) => sendResult(call.response, result))
        }),
      ),
  },
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${repository}/models/(?<name>[^/]+)/load$`),
    handle: (call) =>
      control(gateway, call, maxInputSize, ({ load }, parameters) =>
        Result.map(RepositoryIndex.loadOverrides(parameters), (overrides) => load(call.model.name, overrides)),
      ),
  },
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${repository}/models/(?<name>[^/]+)/unload$`),
    handle: (call) =>
      control(gateway, call, maxBodySize, ({ unload }, parameters) =>
        Result.map(RepositoryIndex.unloadDependents(parameters), (dependents) => unload(call.model.name, dependents)),
      ),
  },
  {
    method: "GET",
    api: "logging",
    path: /^\/v2\/logging$/,
    handle: ({ response }) => sendJson(response, 200, LogSettings.json(gateway.logging.current())),
  },
  {
    method: "POST",
    api: "logging",
    path: /^\/v2\/logging$/,
    handle: (call) =>
      withSettings(call, (settings) =>
        Result.map(LogSettings.fromJson(settings), (changes) => LogSettings.json(gateway.logging.change(changes))),
      ),
  },
  {
    method: "GET",
    api: "trace",
    path: traceSetting,
    handle: ({ response, model }) =>
      sendResult(response, Result.map(gateway.traceSettings(model.name, {}), TraceSettings.json)),
  },
  {
    method: "POST",
    api: "trace",
    path: traceSetting,
    handle: (call) => {
      const { name } = call.model
      const current = gateway.traceSettings(name, {})
      // An unknown model is reported before an invalid body.
      if (Result.isFailure(current)) return sendError(call.response, current.failure)
      withSettings(call, (settings) =>
        TraceSettings.fromJson(settings).pipe(
          Result.flatMap((changes) => gateway.traceSettings(name, changes)),
          Result.map(TraceSettings.json),
        ),
      )
    },
  },
]

/** Maximum size of a settings body, in bytes. */
const maxBodySize = 1024 * 1024

const withSettings = (
  call: HttpCall,
  use: (settings: SettingsDocument.SettingsDocument) => Result.Result<object, InferenceError>,
): void =>
  collect(call, maxBodySize, (body) =>
    call.guard(() => sendResult(call.response, Result.flatMap(SettingsDocument.read(body), use))),
  )

/** Loads or unloads a model, to its end, also where the caller leaves. */
const control = (
  gateway: Gateway,
  call: HttpCall,
  limit: number,
  use: (
    control: Control,
    parameters: RepositoryIndex.RepositoryParameters,
  ) => Result.Result<Effect.Effect<void, InferenceError>, InferenceError>,
): void => {
  const { response, guard, repository } = call
  const repositoryControl = gateway.repositoryControl(repository)
  // Reported before an invalid body.
  if (Result.isFailure(repositoryControl)) return sendError(response, repositoryControl.failure)
  collect(call, limit, (body) =>
    guard(() => {
      const change = Result.flatMap(ControlDocument.read(body), (parameters) =>
        use(repositoryControl.success, parameters),
      )
      if (Result.isFailure(change)) return sendError(response, change.failure)
      HttpEffect.respond({ guard }, change.success, (result) => {
        if (Result.isFailure(result)) sendError(response, result.failure)
        else sendEmpty(response, 200)
      })
    }),
  )
}

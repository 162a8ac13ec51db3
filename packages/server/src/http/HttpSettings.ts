/**
 * Routes about the server and not about inference: their body is a small JSON object of settings, or nothing, and their
 * answer JSON. What the settings mean is in Repository.ts, LogSettings.ts and TraceSettings.ts.
 */
import { Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import * as SettingsDocument from "@nereid/core/SettingsDocument"
import type { Gateway } from "../Gateway.ts"
import { collect } from "./HttpBody.ts"
import { sendJson, sendResult } from "./HttpReply.ts"
import type { HttpCall } from "./HttpCall.ts"
import type { Route } from "./HttpRoute.ts"
import * as LogSettings from "../log/LogSettings.ts"
import * as Repository from "../Repository.ts"
import * as TraceSettings from "../trace/TraceSettings.ts"

const repository = "/v2/repository(?:/(?<repository>[^/]+))?"

const traceSetting = /^\/v2(?:\/models\/(?<name>[^/]+))?\/trace\/setting$/

export const routes = (gateway: Gateway): ReadonlyArray<Route> => [
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${repository}/index$`),
    answer: (call) =>
      withSettings(call, (settings) =>
        Result.flatMap(Repository.readyOnly(settings), (readyOnly) =>
          gateway.repositoryIndex({ repository: call.repository, readyOnly }),
        ),
      ),
  },
  {
    method: "POST",
    api: "model-repository",
    path: new RegExp(`^${repository}/models/(?<name>[^/]+)/(?:load|unload)$`),
    // Whatever the body asks for, so that nobody has to send all of it.
    answer: ({ response, repository }) => sendResult(response, gateway.repositoryControl(repository)),
  },
  {
    method: "GET",
    api: "logging",
    path: /^\/v2\/logging$/,
    answer: ({ response }) => sendJson(response, 200, LogSettings.json(gateway.logging.current())),
  },
  {
    method: "POST",
    api: "logging",
    path: /^\/v2\/logging$/,
    answer: (call) =>
      withSettings(call, (settings) =>
        Result.map(LogSettings.fromJson(settings), (changes) => LogSettings.json(gateway.logging.change(changes))),
      ),
  },
  {
    method: "GET",
    api: "trace",
    path: traceSetting,
    answer: ({ response, model }) =>
      sendResult(response, Result.map(gateway.traceSettings(model.name, {}), TraceSettings.json)),
  },
  {
    method: "POST",
    api: "trace",
    path: traceSetting,
    answer: (call) =>
      withSettings(call, (settings) =>
        TraceSettings.fromJson(settings).pipe(
          Result.flatMap((changes) => gateway.traceSettings(call.model.name, changes)),
          Result.map(TraceSettings.json),
        ),
      ),
  },
]

/** The most bytes of such a body. */
const largest = 1024 * 1024

const withSettings = (
  { request, response, guard }: HttpCall,
  use: (settings: SettingsDocument.SettingsDocument) => Result.Result<object, InferenceError>,
): void =>
  collect(request, response, largest, (body) =>
    guard(() => sendResult(response, Result.flatMap(SettingsDocument.read(body), use))),
  )

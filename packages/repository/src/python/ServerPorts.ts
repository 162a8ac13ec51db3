/** The services of the server for the code of one instance: other models, their loads, metrics and the log. */
import { type Context, Effect, Metric, Result } from "effect"
import type { InferenceError } from "@nereid/core/Errors"
import type { ModelControl, ModelPorts } from "@nereid/python/internal/process/ModelPorts"
import * as MetricFamilies from "@nereid/python/internal/ports/MetricFamilies"
import * as ModelCalls from "@nereid/python/internal/ports/ModelCalls"
import * as PythonLog from "./PythonLog.ts"
import type { PythonServer } from "../plan/PythonServer.ts"

/** Runs with the services of this context. */
export const make = (
  server: PythonServer,
  caller: ModelCalls.CallingModel,
  context: Context.Context<never>,
  instance: string,
): ModelPorts => {
  const registry = Effect.runSyncWith(context)(Metric.MetricRegistry)
  return {
    ...PythonLog.make(context, instance),
    call: ModelCalls.make((name, version) => server.models.get(name, version), caller, context),
    control: (control) => controlled(server, control),
    metrics: () => MetricFamilies.make(registry),
  }
}

const controlled = (server: PythonServer, control: ModelControl): Effect.Effect<boolean, InferenceError> => {
  if (control._tag === "IsReady") return isReady(server, control.model, control.version)
  const allowed = server.control()
  if (Result.isFailure(allowed)) return Effect.fail(allowed.failure)
  const { load, unload } = allowed.success
  if (control._tag === "Unload") return Effect.as(unload(control.model, control.dependents), true)
  const { model, config, files } = control
  return Effect.as(load(model, { files, ...(config !== "" && { config }) }), true)
}

/** A known model that takes no requests is not ready, which is not an error. */
const isReady = ({ models }: PythonServer, name: string, version: string): Effect.Effect<boolean, InferenceError> => {
  const found = models.get(name, version)
  if (Result.isSuccess(found)) return found.success.life.probe
  const isAbsent = found.failure._tag === "ModelNotReady" || (version === "" && models.absent(name).length > 0)
  return isAbsent ? Effect.succeed(false) : Effect.fail(found.failure)
}

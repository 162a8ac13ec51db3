/**
 * Information about the models of a v2 server, over either protocol: metadata, configuration if available, readiness
 * and index. Inference uses channels instead.
 */
import { Effect, Result, type Scope } from "effect"
import type { Contract } from "@nereid/core/internal/contract/Contract"
import { DeadlineExceeded, type InferenceError } from "@nereid/core/Errors"
import * as MetadataMessage from "@nereid/core/internal/configuration/MetadataMessage"
import { type ClientOptions, settings as read, type ClientSettings } from "../channel/ClientOptions.ts"
import * as Endpoint from "../channel/Endpoint.ts"
import * as GrpcInspection from "./GrpcInspection.ts"
import * as HttpInspection from "./HttpInspection.ts"
import type { Inspection } from "./InspectionApi.ts"

export type { Inspection } from "./InspectionApi.ts"

/** Makes an inspection for the lifetime of the scope, for the model version in the options. */
export const make = (settings: ClientSettings): Effect.Effect<Inspection, never, Scope.Scope> =>
  Effect.map(
    settings.endpoint.protocol === "grpc" ? GrpcInspection.make(settings) : HttpInspection.make(settings),
    ({ metadata, configuration, ready, index }) => {
      const bounded = withTimeout(settings)
      return {
        metadata: (model) => bounded(metadata(model)),
        configuration: (model) => bounded(configuration(model)),
        ready: (model) => bounded(ready(model)),
        index: bounded(index),
      }
    },
  )

/** @throws TypeError if the URL or another option is invalid */
export const open = (options: ClientOptions): Effect.Effect<Inspection, never, Scope.Scope> => {
  const settings = read(options)
  return Effect.suspend(() => make(settings))
}

/**
 * Returns the contract of a model from the server's metadata and configuration. `unconfigured` is the reason for a
 * missing configuration.
 */
export const contract = (
  inspection: Inspection,
  model: string,
): Effect.Effect<{ readonly contract: Contract; readonly unconfigured: string | undefined }, InferenceError> =>
  Effect.gen(function* () {
    const metadata = yield* inspection.metadata(model)
    const configuration = yield* inspection.configuration(model)
    return {
      contract: { ...MetadataMessage.contract(metadata, Result.getOrUndefined(configuration)), name: model },
      unconfigured: Result.isFailure(configuration) ? configuration.failure : undefined,
    }
  })

/** Timeout of a call without a configured one, in milliseconds. */
const defaultTimeout = 30_000

const withTimeout =
  ({ timeout = defaultTimeout, endpoint }: ClientSettings) =>
  <A>(effect: Effect.Effect<A, InferenceError>): Effect.Effect<A, InferenceError> =>
    Effect.timeoutOrElse(effect, {
      duration: timeout,
      orElse: () => {
        const message = `${Endpoint.address(endpoint)} has not answered within ${timeout} ms`
        return Effect.fail(new DeadlineExceeded({ message }))
      },
    })

/**
 * Information about the models of a v2 server, over either protocol: metadata, configuration if available, readiness
 * and index. Inference uses channels instead.
 */
import { Effect, Result, type Scope } from "effect"
import type { Contract } from "@nereid/core/internal/contract/Contract"
import * as ContractExtension from "@nereid/core/internal/contract/ContractExtension"
import { DeadlineExceeded, type InferenceError, type Unavailable } from "@nereid/core/Errors"
import * as MetadataMessage from "@nereid/core/internal/configuration/MetadataMessage"
import { type ClientOptions, settings as read, type ClientSettings } from "../channel/ClientOptions.ts"
import * as ServerUrl from "@nereid/core/internal/wire/ServerUrl"
import type { InvalidUrl } from "@nereid/core/internal/wire/ServerUrl"
import { detect } from "../channel/ProtocolProbe.ts"
import * as GrpcInspection from "./GrpcInspection.ts"
import * as HttpInspection from "./HttpInspection.ts"
import type { Inspection } from "./InspectionApi.ts"

export type { Inspection } from "./InspectionApi.ts"

/**
 * Makes an inspection for the lifetime of the scope, for the model version in the options. Fails if the protocol of a
 * URL without a scheme cannot be found.
 */
export const make = (given: ClientSettings): Effect.Effect<Inspection, Unavailable, Scope.Scope> =>
  Effect.flatMap(detect(given), (settings) =>
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
    ),
  )

/** @throws TypeError if an option other than the URL is invalid */
export const open = (options: ClientOptions): Effect.Effect<Inspection, InvalidUrl | Unavailable, Scope.Scope> =>
  Effect.flatMap(Effect.fromResult(read(options)), make)

export interface FoundContract {
  readonly contract: Contract
  /** Reason for a missing configuration. */
  readonly unconfigured: string | undefined
  /** Reason for an unused contract in the metadata. */
  readonly unreadable: string | undefined
}

/** Returns the contract of a model from the server's metadata and configuration. */
export const contract = (inspection: Inspection, model: string): Effect.Effect<FoundContract, InferenceError> =>
  Effect.gen(function* () {
    const metadata = yield* inspection.metadata(model)
    const configuration = yield* inspection.configuration(model)
    const plain = { ...MetadataMessage.contract(metadata, Result.getOrUndefined(configuration)), name: model }
    const { contractJson } = metadata
    const merged = contractJson === "" ? Result.succeed(plain) : ContractExtension.merge(plain, contractJson)
    return {
      contract: Result.getOrElse(merged, () => plain),
      unconfigured: Result.isFailure(configuration) ? configuration.failure : undefined,
      unreadable: Result.isFailure(merged) ? merged.failure : undefined,
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
        const message = `${ServerUrl.address(endpoint)} did not respond within ${timeout} ms`
        return Effect.fail(new DeadlineExceeded({ message }))
      },
    })

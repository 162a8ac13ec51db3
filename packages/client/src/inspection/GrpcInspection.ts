/** Metadata, configuration and state of models, over gRPC. */
import { Code, ConnectError, createClient } from "@connectrpc/connect"
import { Effect, Result, type Scope } from "effect"
import { fromTrailers } from "@nereid/core/internal/wire/ErrorTrailers"
import { type InferenceError, ModelNotReady } from "@nereid/core/Errors"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import type { ClientSettings } from "../channel/ClientOptions.ts"
import { GrpcConnection } from "../grpc/GrpcConnection.ts"
import * as GrpcTransport from "../grpc/GrpcTransport.ts"
import type { Inspection } from "./InspectionApi.ts"

export const make = (settings: ClientSettings): Effect.Effect<Inspection, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new GrpcConnection(settings)),
      (connection) => Effect.promise(() => connection.close()),
    ),
    (connection) => {
      const { version } = settings
      const server = createClient(GRPCInferenceService, GrpcTransport.make(connection))
      return {
        metadata: (name) => callServer((signal) => server.modelMetadata({ name, version }, { signal })),
        configuration: (name) =>
          callRaw((signal) => server.modelConfig({ name, version }, { signal })).pipe(
            Effect.map(({ config }) =>
              config === undefined ? Result.fail("its response has no configuration") : Result.succeed(config),
            ),
            Effect.catch((error) =>
              isNotOffered(error) ? Effect.succeed(Result.fail(error.rawMessage)) : Effect.fail(failure(error)),
            ),
          ),
        ready: (name) =>
          Effect.flatMap(
            callServer((signal) => server.modelReady({ name, version }, { signal })),
            ({ ready }) =>
              ready ? Effect.void : Effect.fail(new ModelNotReady({ message: `model '${name}' is not ready` })),
          ),
        index: Effect.map(
          callServer((signal) => server.repositoryIndex({}, { signal })),
          ({ models }) => models,
        ),
      }
    },
  )

const callRaw = <A>(call: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, ConnectError> =>
  Effect.tryPromise({ try: call, catch: (error) => ConnectError.from(error) })

const callServer = <A>(call: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, InferenceError> =>
  Effect.mapError(callRaw(call), failure)

const failure = ({ code, rawMessage, metadata }: ConnectError): InferenceError =>
  fromTrailers(code, rawMessage, (name) => metadata.get(name) ?? undefined)

/**
 * Whether an error means that the server offers no configuration, for a model with metadata. Includes Triton's error
 * for a restricted API.
 */
const isNotOffered = ({ code, rawMessage }: ConnectError): boolean =>
  [Code.Unimplemented, Code.NotFound, Code.InvalidArgument, Code.PermissionDenied, Code.Unauthenticated].includes(
    code,
  ) || rawMessage.startsWith("This protocol is restricted")

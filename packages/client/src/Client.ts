/**
 * Clients of models that are served elsewhere: by Nereid, or by another server that speaks the v2 protocol. `layer`
 * provides the model's service; `connect` is the same with promises. Both check every reply against the declaration.
 */
import { Context, Effect, Exit, Layer, Scope, type Stream } from "effect"
import type { Transport } from "@connectrpc/connect"
import type {
  Answer,
  Batched,
  CallArguments,
  Definition,
  Input,
  InputBatch,
  ModelClass,
  Sample,
} from "@nereid/core/Definition"
import type { ChunkOptions } from "@nereid/core/ChunkedCall"
import type { Fields } from "@nereid/core/Field"
import type { Declared } from "@nereid/core/Declared"
import { ask, type PromiseCallOptions, runner } from "@nereid/core/PromiseCall"
import { type Given, inference, responses } from "@nereid/core/Provide"
import type { RunningModel } from "@nereid/core/RunningModel"
import * as TypedCalls from "@nereid/core/TypedCalls"
import type { Channel } from "./Channel.ts"
import { type ClientOptions, settings as read, type Settings } from "./ClientOptions.ts"
import * as GrpcChannel from "./GrpcChannel.ts"
import { GrpcConnection } from "./GrpcConnection.ts"
import * as GrpcTransport from "./GrpcTransport.ts"
import * as HttpChannel from "./HttpChannel.ts"
import * as RemoteModel from "./RemoteModel.ts"
import * as Verification from "./Verification.ts"

export type { PromiseCallOptions } from "@nereid/core/PromiseCall"
export { ContractMismatch, type Difference } from "@nereid/core/ContractDifference"
export type { ClientOptions, TlsOptions } from "./ClientOptions.ts"
export type { VerificationError } from "./Verification.ts"

/**
 * The model as the server at `url` runs it:
 *
 * ```ts
 * program.pipe(Effect.provide(Client.layer(Sentiment, { url: "grpc://models:8001" })))
 * ```
 *
 * It connects at the first call, and again after a connection was lost. Errors are those of a local model; a server that
 * cannot be reached is Unavailable. Interrupting a call cancels it on the server.
 *
 * With `verify: true` the layer asks the server what the model is, and fails with a ContractMismatch that names every
 * difference, or with the InferenceError of a server or a model that is not there or not ready.
 * @throws TypeError where the URL or another option is none
 */
export const layer = <
  Self,
  N extends string,
  I extends Fields,
  O extends Fields,
  P extends Declared,
  const Options extends ClientOptions,
>(
  model: ModelClass<Self, N, I, O, P>,
  options: Given<Options, ClientOptions>,
): Layer.Layer<Self, Verification.Errors<Options>> => {
  const settings = read(options)
  const layer = Layer.effect(
    model,
    Effect.map(remote(model.definition, settings), (running) => inference(model.definition, running)),
  )
  // Where nothing is verified, nothing fails.
  return layer as Layer.Layer<Self, Verification.Errors<Options>>
}

/** A model as callers without Effect see it. Calls reject with the tagged errors of `Errors`, and those that the model declares. */
export interface PromiseClient<
  I extends Fields,
  O extends Fields,
  P extends Declared = undefined,
> extends AsyncDisposable {
  readonly infer: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => Promise<Sample<O>>
  /**
   * The responses of one sample, as they come: any number from a decoupled model, one from any other. The request is made
   * once they are iterated; a loop that is left takes it back.
   */
  readonly stream: (sample: Input<I>, ...options: CallArguments<P, PromiseCallOptions<P>>) => AsyncIterable<Sample<O>>
  /** Several samples along axis 0. More than `maxBatchSize` go in chunks; see ChunkOptions. */
  readonly inferBatch: (
    batch: InputBatch<I>,
    ...options: CallArguments<P, PromiseCallOptions<P> & ChunkOptions>
  ) => Promise<Batched<O>>
  /** The same calls with the parameters of their responses, as Inference has them. */
  readonly withParameters: {
    readonly infer: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => Promise<Answer<Sample<O>, P>>
    readonly stream: (
      sample: Input<I>,
      ...options: CallArguments<P, PromiseCallOptions<P>>
    ) => AsyncIterable<Answer<Sample<O>, P>>
    readonly inferBatch: (
      batch: InputBatch<I>,
      ...options: CallArguments<P, PromiseCallOptions<P> & ChunkOptions>
    ) => Promise<Answer<Batched<O>, P>>
  }
  /** Calls that still wait reject with Unavailable. */
  readonly close: () => Promise<void>
}

/**
 * The same without Effect:
 *
 * ```ts
 * await using sentiment = await Client.connect(Sentiment, { url: "http://models:8000" })
 * const { CLASS } = await sentiment.infer({ TEXT: "a great movie" })
 * ```
 *
 * Rejects with a TypeError where the URL or another option is none; the server is asked at the first call only, or, with
 * `verify: true`, at once: then it rejects as the layer fails.
 */
export const connect = async <Self, N extends string, I extends Fields, O extends Fields, P extends Declared>(
  model: ModelClass<Self, N, I, O, P>,
  options: ClientOptions,
): Promise<PromiseClient<I, O, P>> => {
  const settings = read(options)
  const scope = await Effect.runPromise(Scope.make())
  const opening = Effect.onError(Scope.provide(remote(model.definition, settings), scope), () =>
    Scope.close(scope, Exit.void),
  )
  const running = await Effect.runPromise(opening)
  const calls = TypedCalls.make(model.definition, running)
  const { infer, inferBatch, withParameters } = calls
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  return {
    infer: (sample, ...[options]) => ask((reply) => infer(sample, options, Date.now(), reply), options),
    stream: (sample, ...[options]) => streamed(options, responses(calls, running, calls.sample, sample, options)),
    inferBatch: (batch, ...[options]) => ask((reply) => inferBatch(batch, options, Date.now(), reply), options),
    withParameters: {
      infer: (sample, ...[options]) =>
        ask((reply) => withParameters.infer(sample, options, Date.now(), reply), options),
      stream: (sample, ...[options]) => streamed(options, responses(calls, running, calls.answer, sample, options)),
      inferBatch: (batch, ...[options]) =>
        ask((reply) => withParameters.inferBatch(batch, options, Date.now(), reply), options),
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

const streamed = <A, E>(
  options: { readonly signal?: AbortSignal } | undefined,
  responses: Stream.Stream<A, E>,
): AsyncIterable<A> => runner(Context.empty, () => options?.signal)(responses)

/** What Connect's clients call through, and what ends its connection. */
export interface ClosableTransport extends Transport, AsyncDisposable {
  readonly close: () => Promise<void>
}

/**
 * The way to all other RPCs, such as metadata and statistics, with Connect's typed client. Unary RPCs only.
 *
 * ```ts
 * const server = createClient(GRPCInferenceService, Client.transport({ url: "grpc://models:8001" }))
 * const { version } = await server.serverMetadata({})
 * ```
 * @throws TypeError where the URL or another option is none, or the URL is not one of gRPC
 */
export const transport = (
  options: Pick<ClientOptions, "url" | "headers" | "tls" | "connectTimeout" | "maxResponseSize">,
): ClosableTransport => {
  const settings = read(options)
  if (settings.endpoint.protocol !== "grpc") {
    throw new TypeError(`A transport needs a URL that begins with grpc:// or grpcs://, but ${options.url} was given.`)
  }
  const connection = new GrpcConnection(settings)
  const close = () => connection.close()
  return { ...GrpcTransport.make(connection), close, [Symbol.asyncDispose]: close }
}

const remote = (
  definition: Definition<Fields, Fields>,
  settings: Settings,
): Effect.Effect<RunningModel, Verification.VerificationError, Scope.Scope> =>
  Effect.andThen(
    settings.verify ? Verification.check(definition, settings) : Effect.void,
    Effect.suspend(() => RemoteModel.make(definition, channel(settings), settings)),
  )

const channel = (settings: Settings): Channel =>
  settings.endpoint.protocol === "grpc" ? GrpcChannel.make(settings) : HttpChannel.make(settings)

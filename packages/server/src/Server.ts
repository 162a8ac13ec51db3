/**
 * The server as one layer: the models it serves are its needs, the addresses it listens on its service. It owns the order
 * of start and stop, and nothing else: what a request does is the gateway's, how it travels the front ends'.
 *
 *   start:  metrics, HTTP, gRPC listen, nothing is ready ─► models (their layers) ─► repository, if any, loads its models ─► ready
 *   stop:   readiness off ─► listeners close, the repository loads no more, in-flight requests finish (at most `drainTimeout`) ─►
 *           models unload, those of the repository, too
 *   a model fails unrecoverably:  readiness off ─► stop, by whoever holds the server
 */
import { totalmem } from "node:os"
import { Cause, Context, Deferred, Duration, Effect, Exit, Fiber, Layer, Option, Runtime, Scope } from "effect"
import type { Unrecoverable } from "@nereid/core/Errors"
import {
  type IndexEntry,
  ModelRepository,
  none as noRepository,
  type Open,
  type OpenRepository,
} from "@nereid/core/internal/lifecycle/ModelRepository"
import * as Absent from "@nereid/core/internal/lifecycle/PlaceholderModel"
import type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
import * as PromiseCall from "@nereid/core/internal/call/PromiseCall"
import {
  type Models,
  Registry,
  type RetireOptions,
  Served,
  type UnloadOptions,
} from "@nereid/core/internal/lifecycle/Registry"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import * as Cors from "./port/Cors.ts"
import * as GarbageCollector from "./memory/GarbageCollector.ts"
import * as Gateway from "./gateway/Gateway.ts"
import type { ResponseCompression } from "./grpc/GrpcCompression.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import * as HttpServer from "./http/HttpServer.ts"
import type { ModelRoutes } from "./http/HttpModelRoutes.ts"
import type { Keepalive } from "./grpc/Keepalive.ts"
import type { MetricsOptions } from "./metrics/PrometheusMetrics.ts"
import * as Logging from "./log/Logging.ts"
import type { LogControl } from "./log/LogSettings.ts"
import * as MetricsServer from "./metrics/MetricsServer.ts"
import * as OnePort from "./OnePort.ts"
import * as RepositoryIndex from "./gateway/RepositoryIndex.ts"
import type { Restriction } from "./gateway/RestrictedApis.ts"
import * as SelfStop from "./SelfStop.ts"
import { ServeError } from "./error/ServeError.ts"
import * as SharedMemory from "./memory/SharedMemory.ts"
import { SystemSharedMemory } from "./memory/SystemSharedMemory.ts"
import type { Tls } from "./port/Tls.ts"
import type { TraceSettings } from "./trace/TraceSettings.ts"
import * as Spans from "./trace/Spans.ts"
import * as Tracing from "./trace/Tracing.ts"
import { version } from "./version.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

export type { DeclaredModel } from "@nereid/core/internal/call/ModelClass"
export type { Cors } from "./port/Cors.ts"
export type { ModelRoutes } from "./http/HttpModelRoutes.ts"
export type { Keepalive } from "./grpc/Keepalive.ts"
export type { Tls } from "./port/Tls.ts"
export type { MetricsOptions } from "./metrics/PrometheusMetrics.ts"
export type { TraceLevel, TraceSettings } from "./trace/TraceSettings.ts"

/** Where a front end listens: a port on all addresses, a port on one, or false for nowhere. Port 0: a free one. */
export type Listen = number | false | { readonly host: string; readonly port: number }

export interface ServerOptions {
  /** HTTP. Default 8000. */
  readonly http?: Listen
  /** gRPC, Connect and gRPC-Web. Default 8001. */
  readonly grpc?: Listen
  /**
   * All that these two answer, over HTTP/1.1 and HTTP/2, on one port beside them. Where it is the port of one of them, that
   * one has none of its own. Default false.
   */
  readonly port?: Listen
  /** Prometheus' /metrics. Default 8002. */
  readonly metrics?: Listen
  /** What /metrics tells: latency counters and summaries, the machine. */
  readonly metricsOptions?: MetricsOptions
  /** Certificates of these ports, from files; a port without speaks plaintext. Default none. */
  readonly tls?: { readonly http?: Tls; readonly grpc?: Tls; readonly port?: Tls }
  /** What browsers let pages of other origins ask, on all ports but that of metrics. Default none. */
  readonly cors?: Cors.Cors
  /** The server's name in its metadata. Default nereid. */
  readonly id?: string
  /** The largest HTTP body, in bytes. Default 64 MiB. */
  readonly maxInputSize?: number
  /** The largest gRPC message, in bytes. Default 256 MiB, at most 2 GiB - 1. */
  readonly maxMessageSize?: number
  /** Of gRPC's answers to inferences, where the caller accepts it; gzip, deflate and brotli. Default "none". */
  readonly responseCompression?: ResponseCompression
  /** What becomes of gRPC's connections that are dead, that ping too much or that are old. Default as in gRPC itself. */
  readonly keepalive?: Keepalive
  /** Bytes that requests hold together until they are answered. Default half of the memory that the process may use. */
  readonly maxInFlightSize?: number
  /** Connections at one time, on each port; one more is closed at once. Default 10,000. */
  readonly maxConnections?: number
  /** Whether gRPC inference, unary and streams, takes its own path before Connect. Default true; false to compare them. */
  readonly fastInference?: boolean
  /**
   * Headers (HTTP) and metadata (gRPC) that become parameters of their requests: a regular expression each, that matches
   * any part of a name, whatever the case unless it begins with `(?-i)`. Default none.
   */
  readonly forwardHeaders?: { readonly http?: string; readonly grpc?: string }
  /**
   * Paths of one's own, beside the protocol's, over HTTP: each takes one sample of a model as plain JSON and answers so; one
   * that streams, with server-sent events. `GET /openapi.json` tells of them. Default none.
   *
   * ```ts
   * routes: { "POST /sentiment": Sentiment } // curl -d '{"TEXT":"great"}' localhost:8000/sentiment
   * ```
   */
  readonly routes?: ModelRoutes
  /** What answers only to calls with a secret header. Default nothing. */
  readonly restrictedApis?: { readonly http?: ReadonlyArray<Restriction>; readonly grpc?: ReadonlyArray<Restriction> }
  /** Whether callers may have tensors read from and written to shared memory of this machine. Default false. */
  readonly allowClientSharedMemory?: boolean
  /**
   * What the server's own log has, where it goes and how it looks; may be changed while the server runs. Without effect
   * inside `Logging.layer`, which has its own. Default: information, warnings and errors, to stderr, in Triton's format.
   */
  readonly logging?: Logging.LoggingOptions
  /**
   * Which requests are traced, into which file; all but the file may be changed while the server runs. Default: none, and
   * without a file none ever.
   */
  readonly trace?: Partial<TraceSettings>
  /**
   * Whether V8 is told to count buffers together with its heap and not to guess which objects will live long, for the whole
   * process: requests of large tensors cost a fraction, small ones over gRPC an eighth less, and some tens of megabytes
   * more may be waiting to be collected. Default true.
   */
  readonly tuneGarbageCollector?: boolean
  /** Whether the server is ready only while all its models are; else while it serves at all. Default true. */
  readonly strictReadiness?: boolean
  /** How long a stop waits for requests in flight. Default 30 seconds. */
  readonly drainTimeout?: Duration.Input
  /** Called where a stop goes on without requests that were still in flight after that; the log says so, too. Default: nothing. */
  readonly onDrainTimeout?: () => void
  /**
   * What becomes of a server of which a model has failed unrecoverably (`Errors.Unrecoverable`): called once, when readiness
   * is off, it has to close what holds the server. Default: it ends the process as SIGTERM does, with exit code 1. A server
   * of `Server.start` stops in any case.
   */
  readonly onUnrecoverable?: (error: Unrecoverable) => void
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** A server that listens. */
export class Server extends Context.Service<
  Server,
  {
    /** Where it listens; undefined for what is turned off. */
    readonly http: Address | undefined
    readonly grpc: Address | undefined
    /** Of everything on one port. */
    readonly port: Address | undefined
    readonly metrics: Address | undefined
    /** Those of now, where a repository puts some in and takes some out. */
    readonly models: ReadonlyArray<RunningModel>
    /** Every model there is, also those of a repository that are not loaded. */
    readonly index: () => ReadonlyArray<IndexEntry>
    readonly isReady: () => boolean
  }
>()("@nereid/server/Server") {}

/** What `Model.Service` makes, and any other key of a model. */
export type AnyModel = Context.Key<unknown, { readonly model: RunningModel }>

/**
 * Serves the models. A model that no layer provides is a compile error.
 *
 * ```ts
 * Server.layer([Digits], { http: 8000, grpc: 8001 }).pipe(Layer.provide(DigitsLive), Layer.launch, NodeRuntime.runMain)
 * ```
 *
 * The models are there before it is: its ports open once they are loaded. Those of `serve` open before.
 */
export const layer = <const M extends ReadonlyArray<AnyModel>>(
  models: M,
  options: ServerOptions = {},
): Layer.Layer<Server, ServeError, M[number]["Identifier"]> =>
  Layer.effect(
    Server,
    Effect.gen(function* () {
      const services = yield* Effect.all(models.map((model) => provided<M[number]["Identifier"]>(model)))
      const running = services.map(({ model }) => model)
      return yield* logged(options, (control) =>
        open(running, Effect.succeed({ models: running }), { ...options, control }),
      )
    }),
    // Memoized by what it is, so this one is also that of the models.
  ).pipe(Layer.provide(Registry.layer))

/**
 * Serves the models of a layer that is built once the ports are open: while they are being loaded, the server is live and not
 * ready, and requests to them are refused as ModelNotReady (gRPC UNAVAILABLE, HTTP 503). It is there once they are, and
 * provides them.
 *
 * ```ts
 * Server.serve([Digits], DigitsLive, { http: 8000, grpc: 8001 }).pipe(Layer.launch, NodeRuntime.runMain)
 * ```
 */
export const serve = <const M extends ReadonlyArray<DeclaredModel>, E, R>(
  models: M,
  provided: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, R>,
  options: ServerOptions = {},
): Layer.Layer<Server | M[number]["Identifier"], ServeError | E, R> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const outside = yield* Effect.context<R>()
      const built = Deferred.makeUnsafe<Context.Context<M[number]["Identifier"]>>()
      const load = Layer.build(provided).pipe(
        Effect.tap((context) => Deferred.succeed(built, context)),
        Effect.map((context) => ({
          models: models.map((model) => runningOf(context, model)),
          // Theirs, or the one around them.
          repository: Context.get(Context.merge(outside, context), ModelRepository),
        })),
        // Their log is the program's, not the server's.
        Effect.updateContext((inside: Context.Context<Scope.Scope>) =>
          Context.add(outside, Scope.Scope, Context.get(inside, Scope.Scope)),
        ),
      )
      const expected = models.map(({ definition }) => Absent.make(definition))
      const server = yield* logged(options, (control) => open(expected, load, { ...options, control }))
      return Context.add(yield* Deferred.await(built), Server, server)
    }),
  ).pipe(Layer.provide(Registry.layer))

const runningOf = <Identifier>(
  context: Context.Context<Identifier>,
  model: Context.Key<Identifier, { readonly model: RunningModel }>,
): RunningModel => Context.get(context, model).model

const logged = <A, E, R>(options: ServerOptions, run: (control: LogControl) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Logging.current(options.logging ?? {}), (logging) => Logging.through(logging)(run(logging.control)))

/** The same options, whose types tell which ports there will be. */
export interface StartOptions<
  H extends Listen,
  G extends Listen,
  P extends Listen,
  M extends Listen,
> extends ServerOptions {
  readonly http?: H
  readonly grpc?: G
  readonly port?: P
  readonly metrics?: M
}

type ListensAt<L extends Listen> = L extends false ? undefined : Address

/** One port for everything may be that of HTTP or gRPC, which then has none of its own. */
type OwnPort<L extends Listen, P extends Listen> = P extends false ? ListensAt<L> : ListensAt<L> | undefined

/** A server in the background, for callers without Effect. */
export interface Started<
  H extends Listen,
  G extends Listen,
  P extends Listen,
  M extends Listen,
  Needs = never,
> extends AsyncDisposable {
  /** Where it listens; undefined for what is turned off. */
  readonly http: OwnPort<H, P>
  readonly grpc: OwnPort<G, P>
  /** Of everything on one port. */
  readonly port: ListensAt<P>
  readonly metrics: ListensAt<M>
  readonly models: ReadonlyArray<RunningModel>
  readonly isReady: () => boolean
  /** As Registry's, for layers that need nothing but what it has been started with; rejects with what that fails with. */
  readonly load: <const M extends Models, E>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, Needs>,
  ) => Promise<void>
  readonly replace: <const M extends Models, E>(
    models: M,
    layer: Layer.Layer<NoInfer<M[number]["Identifier"]>, E, Needs>,
    options?: RetireOptions,
  ) => Promise<void>
  readonly unload: (name: string, options?: UnloadOptions) => Promise<void>
  /**
   * Readiness off, listeners close, requests in flight finish (at most `drainTimeout`), models unload; then all ports are
   * free again. Any further call waits for the same stop.
   */
  readonly stop: () => Promise<void>
  /**
   * Fulfilled once it has stopped: with what a model has failed with unrecoverably, where that made it stop by itself; then
   * the process is better ended, `if (await server.stopped) process.exit(1)`.
   */
  readonly stopped: Promise<Unrecoverable | undefined>
}

/**
 * Serves the models in the background, until it is stopped:
 *
 * ```ts
 * await using server = await Server.start([Digits], DigitsLive, { http: 0, grpc: 0 })
 * await fetch(`http://localhost:${server.http.port}/v2/models/digits`)
 * ```
 *
 * A layer that lacks one of the models is a compile error; several are one by `Layer.mergeAll`. Rejects where a model cannot
 * be loaded (with its error) or a port is in use (with a ServeError), and then leaves nothing open. Signals of the process
 * are left to the caller: `process.once("SIGTERM", server.stop)`.
 */
export const start = async <
  const Models extends ReadonlyArray<DeclaredModel>,
  E,
  const H extends Listen = number,
  const G extends Listen = number,
  const P extends Listen = false,
  const M extends Listen = number,
>(
  models: Models,
  provided: Layer.Layer<NoInfer<Models[number]["Identifier"]>, E>,
  options: StartOptions<H, G, P, M> = {},
): Promise<Started<H, G, P, M, Models[number]["Identifier"] | Registry>> => {
  const scope = Scope.makeUnsafe()
  const close = Effect.suspend(() => Scope.close(scope, Exit.void))
  let stopping: Promise<void> | undefined
  let fatal: Unrecoverable | undefined
  const stopped = Promise.withResolvers<Unrecoverable | undefined>()
  const stop = () => {
    stopping ??= Effect.runPromise(close)
    void stopping.finally(() => stopped.resolve(fatal)).catch(() => {})
    return stopping
  }
  const onUnrecoverable = (error: Unrecoverable) => {
    fatal = error
    void stop().catch(() => {})
    options.onUnrecoverable?.(error)
  }
  const served = Layer.merge(serve(models, provided, { ...options, onUnrecoverable }), Registry.layer)
  const exit = await Effect.runPromiseExit(Layer.buildWithScope(served, scope))
  if (Exit.isFailure(exit)) {
    await Effect.runPromiseExit(close)
    throw Cause.squash(exit.cause)
  }
  const context = exit.value
  const server = Context.get(context, Server)
  const { load, replace, unload } = Context.get(context, Registry)
  const { http, grpc, port, metrics, isReady } = server
  return {
    // What is undefined follows from these options, as the types have it.
    http: http as OwnPort<H, P>,
    grpc: grpc as OwnPort<G, P>,
    port: port as ListensAt<P>,
    metrics: metrics as ListensAt<M>,
    get models() {
      return server.models
    },
    isReady,
    load: (models, layer) => PromiseCall.run(load(models, layer), context),
    replace: (models, layer, options) => PromiseCall.run(replace(models, layer, options), context),
    unload: (name, options) => PromiseCall.run(unload(name, options), context),
    stop,
    stopped: stopped.promise,
    [Symbol.asyncDispose]: stop,
  }
}

/** The need of one model of a list is the need of the list. */
const provided = <Identifier>(
  model: Context.Key<Identifier, { readonly model: RunningModel }>,
): Effect.Effect<{ readonly model: RunningModel }, never, Identifier> => model

interface OpenOptions extends ServerOptions {
  readonly control: LogControl
}

interface Loaded {
  readonly models: ReadonlyArray<RunningModel>
  /** What their layer brings beside them, where that is another one than the server has been built with. */
  readonly repository?: Open
}

/** Opens the ports, with what is `expected` in the place of the models that are loaded then. */
const open = Effect.fnUntraced(function* <E, R>(
  expected: ReadonlyArray<RunningModel>,
  load: Effect.Effect<Loaded, E, R | Scope.Scope>,
  options: OpenOptions,
): Effect.fn.Return<Server["Service"], E | ServeError, R | Served | Scope.Scope> {
  const { http = 8000, grpc = 8001, metrics = 8002, port = false, id = "nereid" } = options
  const { maxInputSize = 64 * 2 ** 20, maxMessageSize = 256 * 2 ** 20 } = options
  const { fastInference = true, maxConnections = 10_000, forwardHeaders = {}, restrictedApis = {} } = options
  const { allowClientSharedMemory = false, tls = {}, maxInFlightSize = Math.floor(availableMemory() / 2) } = options
  if (options.tuneGarbageCollector !== false) GarbageCollector.tune()
  const cors = options.cors && (yield* Effect.fromResult(Cors.make(options.cors)))
  const drainTimeout = Duration.fromInputUnsafe(options.drainTimeout ?? "30 seconds")
  // Front ends cut their callers off only after the models have had the time to answer them as stopping.
  const stopTimeoutMillis = Duration.toMillis(drainTimeout) + 1000
  // Ahead of the front ends, which so are closed before the models.
  const models = yield* Scope.fork(yield* Scope.Scope)
  const registry = yield* Effect.try({
    try: () => Registry.make(expected),
    catch: (error) => new ServeError({ message: errorMessage(error) }),
  })
  const served = yield* Served
  let opened: OpenRepository = noRepository
  const include = served.include(registry, () => opened.control)
  yield* Effect.mapError(include, failed)
  const openRepository = yield* ModelRepository
  opened = yield* Effect.mapError(Scope.provide(openRepository(registry), models), failed)
  const repository: OpenRepository = {
    begin: Effect.suspend(() => opened.begin),
    index: () => [...served.index(), ...opened.index()],
    isReady: () => opened.isReady(),
    get control() {
      return opened.control
    },
  }
  const sharedMemory = allowClientSharedMemory ? yield* openSharedMemory : SharedMemory.disabled
  const tracing = yield* Tracing.make(registry, options.trace ?? {})
  const gateway = Gateway.make(registry, {
    spans: yield* Spans.make,
    id,
    version,
    logging: options.control,
    tracing,
    sharedMemory,
    maxInFlightSize,
    repository,
    isStarting: true,
    ...(options.strictReadiness === undefined ? {} : { strictReadiness: options.strictReadiness }),
  })

  // In parallel: all listeners close at once, none while it waits for the calls of another.
  const frontEnds = yield* Scope.make("parallel")
  const drain = stop(gateway, frontEnds, drainTimeout, options.onDrainTimeout)
  yield* Effect.addFinalizer(() => drain)
  const listen = (at: Listen, make: (address: Address) => Effect.Effect<Address, ServeError, Scope.Scope>) => {
    if (at === false) return Effect.undefined
    return Scope.provide(make(address(at)), frontEnds)
  }

  const metricsAt = yield* listen(metrics, (address) =>
    MetricsServer.make(gateway, { ...address, metrics: options.metricsOptions }),
  )
  const httpOptions = {
    cors,
    maxInputSize,
    forwardHeaders: forwardHeaders.http,
    restrictedApis: restrictedApis.http,
    routes: options.routes,
  }
  const grpcOptions = {
    cors,
    maxMessageSize,
    responseCompression: options.responseCompression,
    keepalive: options.keepalive,
    fastInference,
    forwardHeaders: forwardHeaders.grpc,
    restrictedApis: restrictedApis.grpc,
  }
  const listener = { maxConnections, stopTimeoutMillis }
  const portAt = yield* listen(port, (address) =>
    OnePort.make(gateway, { ...address, ...listener, tls: tls.port, http: httpOptions, grpc: grpcOptions }),
  )
  const httpAt = yield* listen(yield* ownPort("http", http, port, tls), (address) =>
    HttpServer.make(gateway, { ...address, ...listener, tls: tls.http, ...httpOptions }),
  )
  const grpcAt = yield* listen(yield* ownPort("grpc", grpc, port, tls), (address) =>
    GrpcServer.make(gateway, { ...address, ...listener, tls: tls.grpc, ...grpcOptions }),
  )
  const stopped = Effect.suspend(() =>
    Effect.andThen(
      drain,
      Effect.forEach(registry.models, ({ release }) => release ?? Effect.void, { concurrency: "unbounded" }),
    ),
  )
  yield* SelfStop.watch(registry, {
    readinessOff: gateway.beginDrain,
    stop: Effect.asVoid(stopped),
    limit: Duration.sum(drainTimeout, grace),
    onUnrecoverable: options.onUnrecoverable,
  })
  const loaded = yield* Scope.provide(load, models)
  for (const [name, versions] of Map.groupBy(loaded.models, (model) => model.name)) {
    // Versions that code has loaded meanwhile stay.
    const others = registry.versions(name).filter((model) => !expected.includes(model))
    registry.replace(name, [...others, ...versions])
  }
  if (loaded.repository !== undefined && loaded.repository !== openRepository) {
    opened = yield* Effect.mapError(Scope.provide(loaded.repository(registry), models), failed)
  }
  // What it goes on with, such as looking at its directories, ends with the listeners.
  yield* Effect.mapError(Scope.provide(repository.begin, frontEnds), ({ message }) => {
    const index = RepositoryIndex.all(registry.models, repository)
    return new ServeError({ message, found: { index: () => index, models: registry.models } })
  })
  gateway.started()
  return Server.of({
    http: httpAt,
    grpc: grpcAt,
    port: portAt,
    metrics: metricsAt,
    get models() {
      return registry.models
    },
    index: () => RepositoryIndex.all(registry.models, repository),
    isReady: gateway.isReady,
  })
})

const failed = ({ message }: { readonly message: string }) => new ServeError({ message })

/** What models may take to end, once their requests have. */
const grace = Duration.seconds(5)

const address = (at: Exclude<Listen, false>): Address => (typeof at === "number" ? { host: "0.0.0.0", port: at } : at)

/** Where HTTP or gRPC listens by itself: nowhere where everything is on its port. */
const ownPort = (
  name: "http" | "grpc",
  own: Listen,
  everything: Listen,
  tls: NonNullable<ServerOptions["tls"]>,
): Effect.Effect<Listen, ServeError> => {
  if (own === false || everything === false) return Effect.succeed(own)
  const [one, other] = [address(own), address(everything)]
  if (one.port === 0 || one.port !== other.port || one.host !== other.host) return Effect.succeed(own)
  if (tls[name] === undefined) return Effect.succeed(false)
  const message = `tls.${name} is of no use: everything is on ${one.host}:${one.port}, whose certificates are tls.port`
  return Effect.fail(new ServeError({ message }))
}

/** Of the machine, or less where a container has less. */
const availableMemory = (): number => Math.min(totalmem(), process.constrainedMemory() || Infinity)

const openSharedMemory = Effect.acquireRelease(
  Effect.sync(() => new SystemSharedMemory()),
  (memory) => Effect.sync(() => memory.close()),
)

const stop = Effect.fnUntraced(function* (
  gateway: Gateway.Gateway,
  frontEnds: Scope.Closeable,
  limit: Duration.Duration,
  onDrainTimeout: () => void = () => {},
) {
  gateway.beginDrain()
  // A fiber of its own: finalizers cannot be interrupted, so a timeout around them would wait for them all the same.
  const closing = yield* Effect.forkDetach(Scope.close(frontEnds, Exit.void), { startImmediately: true })
  const drained = yield* Fiber.join(closing).pipe(Effect.timeoutOption(limit))
  if (Option.isNone(drained)) {
    const what = "Requests, or models that are being loaded, were"
    yield* Effect.logWarning(`${what} still in flight after ${Duration.format(limit)}; stopping without them`)
    onDrainTimeout()
  }
})

/**
 * How the process ends, for `NodeRuntime.runMain(program, { teardown: Server.teardown })`: a stop by SIGTERM or SIGINT is
 * a success, exit code 0, unless something has set `process.exitCode`, as a server does that stops because a model of it
 * cannot recover. Effect's own default for an interrupted program is 130.
 */
export const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
    ? onExit(Number(process.exitCode ?? 0))
    : Runtime.defaultTeardown(exit, onExit)

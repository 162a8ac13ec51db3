/**
 * Opens a server: its ports, then its models. It owns the order of start and stop, and nothing else: what a request does is the
 * gateway's, how it travels the front ends'.
 *
 *   start:  metrics, HTTP, gRPC listen, nothing is ready ─► models (their layers) ─► repository, if any, loads its models ─► ready
 *   stop:   readiness off ─► listeners close, the repository loads no more, in-flight requests finish (at most `drainTimeout`) ─►
 *           models unload, those of the repository, too
 *   a model fails unrecoverably:  readiness off ─► stop, by whoever holds the server
 */
import { totalmem } from "node:os"
import { Duration, Effect, Exit, Fiber, Option, Scope } from "effect"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import {
  ModelRepository,
  noRepository,
  type Open,
  type OpenRepository,
} from "@nereid/core/internal/lifecycle/ModelRepository"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import { Served } from "@nereid/core/internal/lifecycle/Served"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { ServeError } from "./error/ServeError.ts"
import * as Gateway from "./gateway/Gateway.ts"
import * as RepositoryIndex from "./gateway/RepositoryIndex.ts"
import * as GrpcServer from "./grpc/GrpcServer.ts"
import * as HttpServer from "./http/HttpServer.ts"
import { type Address, Server } from "./ListeningServer.ts"
import type { LogControl } from "./log/LogSettings.ts"
import * as GarbageCollector from "./memory/GarbageCollector.ts"
import * as SharedMemory from "./memory/SharedMemory.ts"
import { SystemSharedMemory } from "./memory/SystemSharedMemory.ts"
import * as MetricsServer from "./metrics/MetricsServer.ts"
import * as OnePort from "./OnePort.ts"
import * as Cors from "./port/Cors.ts"
import * as SelfStop from "./SelfStop.ts"
import type { Listen, ServerOptions } from "./ServerOptions.ts"
import * as Spans from "./trace/Spans.ts"
import * as Tracing from "./trace/Tracing.ts"
import { version } from "./version.ts"

interface OpenOptions extends ServerOptions {
  readonly control: LogControl
}

interface Loaded {
  readonly models: ReadonlyArray<RunningModel>
  /** What their layer brings beside them, where that is another one than the server has been built with. */
  readonly repository?: Open
}

/** Opens the ports while `expected` is being loaded, or once it is. */
export const open = Effect.fnUntraced(function* <E, R>(
  expected: ReadonlyArray<ModelVersion>,
  load: Effect.Effect<Loaded, E, R | Scope.Scope>,
  options: OpenOptions,
): Effect.fn.Return<Server["Service"], E | ServeError, R | Served | Scope.Scope> {
  const { http = 8000, grpc = 8001, metrics = 8002, port = false, id = "nereid" } = options
  const { maxInputSize = 64 * 2 ** 20, maxMessageSize = 256 * 2 ** 20 } = options
  const { fastInference = true, maxConnections = 10_000, forwardHeaders = {}, restrictedApis = {} } = options
  const { allowClientSharedMemory = false, tls = {}, maxInFlightSize = Math.floor(availableMemory() / 2) } = options
  if (options.tuneGarbageCollector === true) GarbageCollector.tune()
  const cors = options.cors && (yield* Effect.fromResult(Cors.make(options.cors)))
  const drainTimeout = Duration.fromInputUnsafe(options.drainTimeout ?? "30 seconds")
  // Front ends cut their callers off only after the models have had the time to answer them as stopping.
  const stopTimeoutMillis = Duration.toMillis(drainTimeout) + 1000
  // Ahead of the front ends, which so are closed before the models.
  const models = yield* Scope.fork(yield* Scope.Scope)
  const store = yield* Effect.try({
    try: () => new ModelStore(expected),
    catch: (error) => new ServeError({ message: errorMessage(error) }),
  })
  const served = yield* Served
  let opened: OpenRepository = noRepository
  yield* Effect.mapError(
    served.include(store, () => opened.control),
    failed,
  )
  const server = { store, lock: served.lock }
  const openRepository = yield* ModelRepository
  opened = yield* Effect.mapError(Scope.provide(openRepository(server), models), failed)
  const repository: OpenRepository = {
    begin: Effect.suspend(() => opened.begin),
    index: () => opened.index(),
    isReady: () => opened.isReady(),
    get control() {
      return opened.control
    },
  }
  const sharedMemory = allowClientSharedMemory ? yield* openSharedMemory : SharedMemory.disabled
  const tracing = yield* Tracing.make(store, options.trace ?? {})
  const gateway = Gateway.make(store, {
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
      Effect.forEach(store.models, ({ life }) => life.release, { concurrency: "unbounded" }),
    ),
  )
  yield* SelfStop.watch(store, {
    readinessOff: gateway.beginDrain,
    stop: Effect.asVoid(stopped),
    limit: Duration.sum(drainTimeout, grace),
    onUnrecoverable: options.onUnrecoverable,
  })
  const loaded = yield* Scope.provide(load, models)
  const ready = loaded.models.map((model) => becomeReady(expected, model))
  for (const [name, versions] of Map.groupBy(ready, (version) => version.name)) {
    // Versions that code has loaded meanwhile stay.
    const others = store.serving(name).filter((version) => !expected.includes(version))
    store.serve(name, [...others, ...versions])
  }
  if (loaded.repository !== undefined && loaded.repository !== openRepository) {
    opened = yield* Effect.mapError(Scope.provide(loaded.repository(server), models), failed)
  }
  // What it goes on with, such as looking at its directories, ends with the listeners.
  yield* Effect.mapError(Scope.provide(repository.begin, frontEnds), ({ message }) => {
    const index = RepositoryIndex.all(store, repository)
    return new ServeError({ message, found: { index: () => index, models: store.models } })
  })
  gateway.started()
  return Server.of({
    http: httpAt,
    grpc: grpcAt,
    port: portAt,
    metrics: metricsAt,
    get models() {
      return store.models
    },
    index: () => RepositoryIndex.all(store, repository),
    isReady: gateway.isReady,
  })
})

/** The expected version that this model is; a new one where it turns out to be another version than was declared. */
const becomeReady = (expected: ReadonlyArray<ModelVersion>, model: RunningModel): ModelVersion => {
  const { name, version } = model.description
  const found = expected.find((other) => other.name === name && other.version === version)
  if (found === undefined) return ModelVersion.ready(model)
  if (found.state === "loading") found.ready(model)
  return found
}

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

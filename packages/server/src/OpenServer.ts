/**
 * Opens a server: its ports, then its models. This module holds the order of start and stop; FrontEnds.ts opens the
 * ports, and the gateway answers requests.
 *
 *   start:  metrics, HTTP, gRPC listen, nothing is ready ─► the layer of models is built, unless it is built already
 *           (ServerLayer.ts) ─► repository, if any, loads its models ─► ready
 *   stop:   readiness off, clients are asked to leave for `drainDelay`
 *           ─► no new sequences ─► sequences are handed over (HandOver.ts), others end
 *           ─► listeners close, the repository loads no more, requests in flight finish (all within `drainTimeout`)
 *           ─► all models unload
 *   a model fails unrecoverably:  readiness off ─► stop, by the owner of the server
 */
import { totalmem } from "node:os"
import { Duration, Effect, Exit, Fiber, Option, Scope } from "effect"
import { CacheSettings } from "@nereid/core/internal/cache/CacheSettings"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { ModelRepository, type Open } from "@nereid/core/internal/lifecycle/ModelRepository"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import { Served } from "@nereid/core/internal/lifecycle/Served"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { ServeError } from "./error/ServeError.ts"
import * as Announcement from "./announce/Announcement.ts"
import * as FrontEnds from "./FrontEnds.ts"
import * as Gateway from "./gateway/Gateway.ts"
import * as RepositoryIndex from "./gateway/RepositoryIndex.ts"
import * as HandOver from "./HandOver.ts"
import * as HttpDashboard from "./http/HttpDashboard.ts"
import * as HttpModelRoutes from "./http/HttpModelRoutes.ts"
import { Server } from "./ListeningServer.ts"
import * as LimitReports from "./limit/LimitReports.ts"
import type { LogControl } from "./log/LogSettings.ts"
import * as StandardStreams from "./log/StandardStreams.ts"
import * as GarbageCollector from "./memory/GarbageCollector.ts"
import * as SharedMemory from "./memory/SharedMemory.ts"
import { SystemSharedMemory } from "./memory/SystemSharedMemory.ts"
import * as OpenSequences from "./OpenSequences.ts"
import * as SelfStop from "./SelfStop.ts"
import { ServerRepository } from "./ServerRepository.ts"
import type { ServerOptions } from "./ServerOptions.ts"
import * as Spans from "./trace/Spans.ts"
import * as Tracing from "./trace/Tracing.ts"
import { version } from "./version.ts"

interface OpenOptions extends ServerOptions {
  readonly control: LogControl
}

interface Loaded {
  readonly models: ReadonlyArray<RunningModel>
  /** The repository that the layer of the models provides, if any. */
  readonly repository?: Open
  /** Settings of the response caches of that repository's models. Default: those around the server. */
  readonly cache?: CacheSettings
}

/** Opens the ports while `expected` is being loaded, or once it is. */
export const open = Effect.fnUntraced(function* <E, R>(
  expected: ReadonlyArray<ModelVersion>,
  load: Effect.Effect<Loaded, E, R | Scope.Scope>,
  options: OpenOptions,
): Effect.fn.Return<Server["Service"], E | ServeError, R | Served | Scope.Scope> {
  if (options.tuneGarbageCollector === true) GarbageCollector.tune()
  StandardStreams.guard()
  const drainTimeout = Duration.fromInputUnsafe(options.drainTimeout ?? "30 seconds")
  const drainDelay = Duration.fromInputUnsafe(options.drainDelay ?? 0)
  // First, to announce the end of a stop behind everything else.
  const announcement =
    options.announce === true ? yield* Announcement.make(options.control.current().file !== "") : Announcement.silent
  const routes = yield* Effect.fromResult(HttpModelRoutes.check(options.routes ?? {}))
  const to =
    options.handOverSequences === undefined
      ? undefined
      : yield* Effect.fromResult(HandOver.check(options.handOverSequences))
  // Before the front ends, which close before the models for that reason.
  const models = yield* Scope.fork(yield* Scope.Scope)
  const store = yield* Effect.try({
    try: () => new ModelStore(expected),
    catch: (error) => new ServeError({ message: errorMessage(error) }),
  })
  const served = yield* Served
  const repository = new ServerRepository()
  const openRepository = (open: Open) =>
    Effect.mapError(Scope.provide(repository.open(open, { store, lock: served.lock }), models), failed)
  yield* Effect.mapError(
    served.include(store, () => repository.control),
    failed,
  )
  yield* openRepository(yield* ModelRepository)
  const gateway = yield* makeGateway(store, repository, options)

  // Listeners close in parallel, so that no listener waits for the calls of another.
  const frontEnds = yield* Scope.make("parallel")
  let reason: string | undefined
  const announced = Effect.suspend(() =>
    announcement.stopping({ inFlight: gateway.inFlight, limit: drainTimeout }, reason),
  )
  const handOver = Effect.suspend(() =>
    to === undefined ? Effect.void : HandOver.run(store.models, to, Duration.min(drainTimeout, maxHandOverWait)),
  )
  // A server that was never ready has no clients.
  let isDelayed = false
  const leave = Effect.gen(function* () {
    if (!isDelayed) return
    isDelayed = false
    gateway.leave()
    yield* announcement.leaving(drainDelay, reason)
    yield* Effect.sleep(drainDelay)
  })
  const drain = leave.pipe(
    Effect.andThen(announced),
    Effect.andThen(Effect.suspend(() => OpenSequences.log(store.models))),
    Effect.andThen(stop(gateway, frontEnds, handOver, drainTimeout, options.onDrainTimeout)),
  )
  yield* Effect.addFinalizer(() => drain)
  const addresses = yield* Scope.provide(FrontEnds.open(gateway, drainTimeout, options), frontEnds)
  const stopped = Effect.suspend(() =>
    Effect.andThen(
      drain,
      Effect.forEach(store.models, ({ life }) => life.release, { concurrency: "unbounded" }),
    ),
  )
  yield* SelfStop.watch(store, {
    readinessOff: () => {
      reason = "because a model cannot recover"
      if (isDelayed) gateway.leave()
      else gateway.beginDrain()
    },
    stop: Effect.asVoid(stopped),
    limit: Duration.sum(Duration.sum(drainDelay, drainTimeout), grace),
    onUnrecoverable: options.onUnrecoverable,
  })

  const loaded = yield* Scope.provide(load, models)
  serve(store, expected, loaded.models)
  const cache = loaded.cache ?? (yield* CacheSettings)
  if (loaded.repository !== undefined) {
    yield* Effect.provideService(openRepository(loaded.repository), CacheSettings, cache)
  }
  // Background work of the repository, such as polling, ends with the listeners.
  const begun = Effect.provideService(Scope.provide(repository.begin, frontEnds), CacheSettings, cache)
  yield* Effect.catch(begun, ({ message }) => {
    const index = RepositoryIndex.all(store, repository)
    const found = { index: () => index, models: store.models }
    return Effect.andThen(announcement.failed(found), new ServeError({ message, found }))
  })
  gateway.started()
  isDelayed = !Duration.isZero(drainDelay)
  const server = Server.of({
    ...addresses,
    get models() {
      return store.models
    },
    index: () => RepositoryIndex.all(store, repository),
    isReady: gateway.isReady,
  })
  yield* announcement.started({
    ...addresses,
    routes,
    dashboard: HttpDashboard.pathOf(options.dashboard ?? false),
    tls: options.tls ?? {},
    index: server.index,
    models: server.models,
  })
  return server
})

const makeGateway = Effect.fnUntraced(function* (
  store: ModelStore,
  repository: ServerRepository,
  options: OpenOptions,
): Effect.fn.Return<Gateway.Gateway, ServeError, Scope.Scope> {
  const { id = "nereid", strictReadiness, allowClientSharedMemory = false } = options
  return Gateway.make(store, {
    spans: yield* Spans.make,
    id,
    version,
    logging: options.control,
    limits: yield* LimitReports.make,
    tracing: yield* Effect.mapError(Tracing.make(store, options.trace ?? {}, { id, version }), failed),
    sharedMemory: allowClientSharedMemory ? yield* openSharedMemory : SharedMemory.disabled,
    maxInFlightSize: options.maxInFlightSize ?? Math.floor(availableMemory() / 2),
    repository,
    isStarting: true,
    ...(strictReadiness === undefined ? {} : { strictReadiness }),
  })
})

/** Serves the loaded models in place of the expected ones. */
const serve = (store: ModelStore, expected: ReadonlyArray<ModelVersion>, models: ReadonlyArray<RunningModel>): void => {
  const ready = models.map((model) => becomeReady(expected, model))
  for (const [name, versions] of Map.groupBy(ready, (version) => version.name)) {
    // Versions that code has loaded meanwhile stay.
    const others = store.serving(name).filter((version) => !expected.includes(version))
    store.serve(name, [...others, ...versions])
  }
}

/** The expected version that this model is; a new one where it turns out to be another version than was declared. */
const becomeReady = (expected: ReadonlyArray<ModelVersion>, model: RunningModel): ModelVersion => {
  const { name, version } = model.description
  const found = expected.find((other) => other.name === name && other.version === version)
  if (found === undefined) return ModelVersion.ready(model)
  if (found.state === "loading") found.ready(model)
  return found
}

const failed = ({ message }: { readonly message: string }) => new ServeError({ message })

/** Least time for the front ends to close, after sequences have used up the limit. */
const closingTime = Duration.seconds(1)

/** Maximum time that a hand-over waits for the running requests of its sequences. */
const maxHandOverWait = Duration.seconds(5)

/** Time limit for models to unload after their requests have ended. */
const grace = Duration.seconds(5)

/** Memory of the machine, or of the container if that is less, in bytes. */
const availableMemory = (): number => Math.min(totalmem(), process.constrainedMemory() || Infinity)

const openSharedMemory = Effect.acquireRelease(
  Effect.sync(() => new SystemSharedMemory()),
  (memory) => Effect.sync(() => memory.close()),
)

const stop = Effect.fn("OpenServer.stop")(function* (
  gateway: Gateway.Gateway,
  frontEnds: Scope.Closeable,
  handOver: Effect.Effect<void>,
  limit: Duration.Duration,
  onDrainTimeout: () => void = () => {},
) {
  // Finalizers cannot be interrupted, so a timeout around them would wait for them. A separate fiber makes the timeout
  // effective.
  // No new sequences begin during the hand-over.
  const sequences = Effect.all([gateway.endSequences, handOver], { concurrency: "unbounded", discard: true })
  const ending = yield* Effect.forkDetach(sequences, { startImmediately: true })
  const [duration, ended] = yield* Effect.timed(Effect.timeoutOption(Fiber.join(ending), limit))
  if (Option.isNone(ended)) yield* Effect.logWarning(`Sequences were still open after ${Duration.format(limit)}`)
  // Sequences that stay open leave the connections a moment to close.
  const rest = Duration.max(Duration.subtract(limit, duration), closingTime)
  gateway.beginDrain()
  const closing = yield* Effect.forkDetach(Scope.close(frontEnds, Exit.void), { startImmediately: true })
  const drained = yield* Fiber.join(closing).pipe(Effect.timeoutOption(rest))
  if (Option.isNone(drained)) {
    const subject = "Requests or model loads were"
    yield* Effect.logWarning(`${subject} still in flight after ${Duration.format(limit)}; stopping without them`)
    onDrainTimeout()
  }
})

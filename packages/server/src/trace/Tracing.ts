/**
 * Traces of single requests, into files or to a receiver of OpenTelemetry. Settings, which can change while the server
 * runs, decide which requests are traced and into which file. The timestamps come from the ports (CallRecord.ts), the
 * gateway and the scheduler.
 *
 *   every rate-th request ─► RequestTrace ─┬─► file          log_frequency 0 and trace_count -1: all traces
 *   (OpenTelemetry: and every one that     ├─► file.0, .1 …  else: log_frequency traces, or all of a count
 *   a traced caller sends)                 └─► SpanExport    in the mode opentelemetry
 */
import { Clock, Effect, Result, type Scope, type Tracer } from "effect"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import type { RegisteredModels } from "@nereid/core/Registry"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import * as OpenTelemetrySettings from "./OpenTelemetrySettings.ts"
import { RequestTrace } from "./RequestTrace.ts"
import type { SpanExport } from "./SpanExport.ts"
import * as TraceElements from "./TraceElements.ts"
import { TraceFile } from "./TraceFile.ts"
import * as TraceSpans from "./TraceSpans.ts"
import { defaults, type TraceChanges, type TraceSettings } from "./TraceSettings.ts"

export interface Tracing {
  /** Settings of a model. An empty name selects the settings of models without separate ones. */
  readonly settings: (model: string) => TraceSettings
  /** Changes the settings, and restarts the count of requests. */
  readonly change: (model: string, changes: TraceChanges) => TraceSettings
  /** Whether a request to any model may be traced. */
  readonly isOn: () => boolean
  /** Whether requests join the traces of their callers. */
  readonly joinsCallers: boolean
  /** Nanoseconds of the monotonic clock. */
  readonly now: () => number
  /** The trace of this request; undefined for one that is not traced. */
  readonly sample: (wire: WireRequest) => RequestTrace | undefined
}

/** Traces nothing, and ignores changes. */
export const disabled: Tracing = {
  settings: () => defaults,
  change: () => defaults,
  isOn: () => false,
  joinsCallers: false,
  now: () => Number(process.hrtime.bigint()),
  sample: () => undefined,
}

/** Counts requests under one group of settings: a model with separate settings, or all other models together. */
interface Sampler {
  settings: TraceSettings
  seen: number
  /** Traces that are not written yet. */
  open: number
  /** The current numbered file; undefined before its first trace, and where files have no numbers. */
  file: TraceFile | undefined
  /** Traces in `file`. */
  written: number
  /** Replaced by a sampler with other settings; only its open traces are still written. */
  isOver: boolean
}

/**
 * Traces until the scope closes. Then files are complete and spans are sent, if the receiver takes them. Problems with
 * files and the receiver are logged. Fails with a TypeError if an option is invalid.
 */
export const make = Effect.fnUntraced(function* (
  models: RegisteredModels,
  options: Partial<TraceSettings>,
  server: { readonly id: string; readonly version: string },
): Effect.fn.Return<Tracing, TypeError, Scope.Scope> {
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const onProblem = (problem: string) => void runFork(Effect.logError(problem))
  const initial = { ...defaults, ...options }
  const spans = initial.mode === "opentelemetry" ? yield* exporter(initial, server) : undefined
  const tracing = new SampledTracing({ models, clock, initial, onProblem, spans })
  yield* Effect.addFinalizer(() => Effect.promise(() => tracing.close()))
  return tracing
})

const exporter = Effect.fnUntraced(function* (
  { openTelemetry }: TraceSettings,
  { id, version }: { readonly id: string; readonly version: string },
) {
  const settings = yield* Effect.try({
    try: () => OpenTelemetrySettings.make(openTelemetry, id),
    catch: (error) => (error instanceof TypeError ? error : new TypeError(errorMessage(error))),
  })
  // Not loaded in the other mode.
  const SpanExport = yield* Effect.promise(() => import("./SpanExport.ts"))
  return yield* SpanExport.make(settings, version)
})

interface SampledTracingOptions {
  readonly models: RegisteredModels
  readonly clock: Clock.Clock
  readonly initial: TraceSettings
  readonly onProblem: (problem: string) => void
  /** Receives traces in the mode opentelemetry. */
  readonly spans: SpanExport | undefined
}

class SampledTracing implements Tracing {
  readonly #options: SampledTracingOptions
  /** Changes for all models, and for single models by name. */
  #global: TraceChanges = {}
  readonly #models = new Map<string, TraceChanges>()
  /** Samplers by model; "" for all models without separate settings. */
  readonly #samplers = new Map<string, Sampler>()
  #isOn = false
  #nextId = 1
  /** All files that are open. */
  readonly #files = new Set<TraceFile>()
  /** The one file of traces whose files have no numbers. */
  #common: TraceFile | undefined
  #nextNumber = 0

  constructor(options: SampledTracingOptions) {
    this.#options = options
    this.#restart("")
    this.#update()
  }

  settings(model: string): TraceSettings {
    return (this.#samplers.get(model) ?? this.#samplers.get(""))?.settings ?? this.#options.initial
  }

  change(model: string, changes: TraceChanges): TraceSettings {
    if (Object.keys(changes).length === 0) return this.settings(model)
    if (model === "") {
      this.#global = { ...this.#global, ...changes }
      for (const name of ["", ...this.#models.keys()]) this.#restart(name)
    } else {
      const changed = { ...this.#models.get(model), ...changes }
      if (Object.keys(given(changed)).length === 0) this.#models.delete(model)
      else this.#models.set(model, changed)
      this.#restart(model)
    }
    this.#update()
    return this.settings(model)
  }

  isOn(): boolean {
    return this.#isOn
  }

  get joinsCallers(): boolean {
    return this.#options.spans !== undefined
  }

  /** A field and not a method, because TracedDispatch.ts calls it without the object. */
  readonly now = (): number => Number(this.#options.clock.monotonicTimeNanosUnsafe())

  sample(wire: WireRequest): RequestTrace | undefined {
    const sampler = this.#samplers.get(wire.modelName) ?? this.#samplers.get("")
    if (sampler === undefined || !isOn(sampler.settings)) return undefined
    const model = this.#options.models.get(wire.modelName, wire.modelVersion)
    if (Result.isFailure(model)) return undefined
    const parent = this.joinsCallers ? wire.parent : undefined
    // A caller that traces decides by itself: neither rate nor count apply.
    if (parent === undefined && !this.#isNext(sampler)) return undefined
    sampler.open += 1
    return RequestTrace.make({
      nextId: () => this.#nextId++,
      now: this.now,
      wire,
      version: model.success.description.version,
      levels: sampler.settings.levels,
      done: (trace) => this.#end(sampler, trace, parent),
    })
  }

  /** Whether the settings select the next request; counts it. */
  #isNext(sampler: Sampler): boolean {
    if (!isSampled(sampler.settings)) return false
    sampler.seen += 1
    if (sampler.seen % sampler.settings.rate !== 0) return false
    if (sampler.settings.count > 0) {
      sampler.settings = { ...sampler.settings, count: sampler.settings.count - 1 }
      this.#update()
    }
    return true
  }

  /** Writes and closes all files. */
  async close(): Promise<void> {
    await Promise.all([...this.#files].map((file) => file.close()))
  }

  /** New settings count from zero, and write into new files where these have numbers. */
  #restart(model: string): void {
    const before = this.#samplers.get(model)
    if (before !== undefined) {
      before.isOver = true
      if (before.open === 0) this.#closeFile(before)
    }
    const changes = model === "" ? {} : this.#models.get(model)
    if (changes === undefined) this.#samplers.delete(model)
    else {
      const settings = { ...this.#options.initial, ...given(this.#global), ...given(changes) }
      this.#samplers.set(model, { settings, seen: 0, open: 0, file: undefined, written: 0, isOver: false })
    }
  }

  #update(): void {
    const selects = this.joinsCallers ? isOn : isSampled
    this.#isOn = this.#samplers.values().some(({ settings }) => selects(settings))
  }

  #end(sampler: Sampler, trace: RequestTrace, parent: Tracer.AnySpan | undefined): void {
    const { spans, clock } = this.#options
    sampler.open -= 1
    if (spans === undefined) return this.#write(sampler, TraceElements.text(trace))
    const epoch = clock.currentTimeNanosUnsafe() - clock.monotonicTimeNanosUnsafe()
    spans.push(TraceSpans.make(trace, parent, epoch))
  }

  #write(sampler: Sampler, elements: string): void {
    const { initial } = this.#options
    const { count, logFrequency } = sampler.settings
    if (logFrequency === 0 && count === -1) {
      this.#common ??= this.#openFile(initial.file)
      return this.#common.write(elements)
    }
    sampler.file ??= this.#openFile(`${initial.file}.${this.#nextNumber++}`)
    sampler.file.write(elements)
    sampler.written += 1
    const isLast = sampler.open === 0 && (sampler.isOver || count === 0)
    if (isLast || sampler.written === logFrequency) this.#closeFile(sampler)
  }

  #openFile(name: string): TraceFile {
    const file = new TraceFile(name, this.#options.onProblem)
    this.#files.add(file)
    return file
  }

  #closeFile(sampler: Sampler): void {
    const { file } = sampler
    sampler.file = undefined
    sampler.written = 0
    void file?.close().then(() => this.#files.delete(file))
  }
}

/** Whether a trace has content and a destination. Spans have no tensors. */
const isOn = ({ levels, file, mode }: TraceSettings): boolean =>
  mode === "triton" ? levels.length > 0 && file !== "" : levels.includes("TIMESTAMPS")

const isSampled = (settings: TraceSettings): boolean => isOn(settings) && settings.rate > 0 && settings.count !== 0

/** The changes that set a value; an undefined value falls back to the next more general settings. */
const given = (changes: TraceChanges): Partial<TraceSettings> =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))

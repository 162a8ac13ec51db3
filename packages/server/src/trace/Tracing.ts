/**
 * Traces of single requests, into files. Settings, which can change while the server runs, decide which requests are
 * traced and into which file. The timestamps come from the ports (CallRecord.ts), the gateway and the scheduler.
 *
 *   every rate-th request ─► RequestTrace ─► file          log_frequency 0 and trace_count -1: all traces
 *                                        └─► file.0, .1 …  else: log_frequency traces, or all of a count
 */
import { Clock, Effect, Result, type Scope } from "effect"
import type { RegisteredModels } from "@nereid/core/Registry"
import type { WireRequest } from "@nereid/core/internal/wire/WireRequest"
import { RequestTrace } from "./RequestTrace.ts"
import { TraceFile } from "./TraceFile.ts"
import { defaults, type TraceChanges, type TraceSettings } from "./TraceSettings.ts"

export interface Tracing {
  /** Settings of a model. An empty name selects the settings of models without separate ones. */
  readonly settings: (model: string) => TraceSettings
  /** Changes the settings, and restarts the count of requests. */
  readonly change: (model: string, changes: TraceChanges) => TraceSettings
  /** Whether a request to any model may be traced. */
  readonly isOn: () => boolean
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

/** Traces into files, which are complete once the scope has closed. Problems with files are logged. */
export const make = Effect.fnUntraced(function* (
  models: RegisteredModels,
  options: Partial<TraceSettings>,
): Effect.fn.Return<Tracing, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const onProblem = (problem: string) => void runFork(Effect.logError(problem))
  const tracing = new FileTracing({ models, clock, initial: { ...defaults, ...options }, onProblem })
  yield* Effect.addFinalizer(() => Effect.promise(() => tracing.close()))
  return tracing
})

interface FileTracingOptions {
  readonly models: RegisteredModels
  readonly clock: Clock.Clock
  readonly initial: TraceSettings
  readonly onProblem: (problem: string) => void
}

class FileTracing implements Tracing {
  readonly #options: FileTracingOptions
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

  constructor(options: FileTracingOptions) {
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

  /** A field and not a method, because TracedDispatch.ts calls it without the object. */
  readonly now = (): number => Number(this.#options.clock.monotonicTimeNanosUnsafe())

  sample(wire: WireRequest): RequestTrace | undefined {
    const sampler = this.#samplers.get(wire.modelName) ?? this.#samplers.get("")
    if (sampler === undefined || !isSampled(sampler.settings)) return undefined
    const model = this.#options.models.get(wire.modelName, wire.modelVersion)
    if (Result.isFailure(model)) return undefined
    sampler.seen += 1
    if (sampler.seen % sampler.settings.rate !== 0) return undefined
    if (sampler.settings.count > 0) {
      sampler.settings = { ...sampler.settings, count: sampler.settings.count - 1 }
      this.#update()
    }
    sampler.open += 1
    return new RequestTrace({
      nextId: () => this.#nextId++,
      wire,
      version: model.success.description.version,
      levels: sampler.settings.levels,
      done: (elements) => this.#write(sampler, elements),
    })
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
    this.#isOn = this.#samplers.values().some(({ settings }) => isSampled(settings))
  }

  #write(sampler: Sampler, elements: string): void {
    const { initial } = this.#options
    const { count, logFrequency } = sampler.settings
    sampler.open -= 1
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

const isSampled = ({ levels, rate, count, file }: TraceSettings): boolean =>
  levels.length > 0 && rate > 0 && count !== 0 && file !== ""

/** The changes that set a value; an undefined value falls back to the next more general settings. */
const given = (changes: TraceChanges): Partial<TraceSettings> =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))

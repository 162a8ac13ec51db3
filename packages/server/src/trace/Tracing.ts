/**
 * Traces of single requests, into files: which requests, and which file, by settings that change while the server runs.
 * The moments come from the ports (CallRecord.ts), the gateway and the scheduler.
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
  /** Of a model, or of all without settings of their own where it is empty. */
  readonly settings: (model: string) => TraceSettings
  /** Changes them, and starts counting anew. */
  readonly change: (model: string, changes: TraceChanges) => TraceSettings
  /** Whether there is any request that would be traced. */
  readonly isOn: () => boolean
  /** Nanoseconds of the monotonic clock. */
  readonly now: () => number
  /** The trace of this request; undefined for one that is not traced. */
  readonly sample: (wire: WireRequest) => RequestTrace | undefined
}

/** Nothing is traced, nothing can be changed. */
export const off: Tracing = {
  settings: () => defaults,
  change: () => defaults,
  isOn: () => false,
  now: () => Number(process.hrtime.bigint()),
  sample: () => undefined,
}

/** Who counts: all models without settings of their own together, each other model alone. */
interface Sampler {
  settings: TraceSettings
  seen: number
  /** Traces that are not written yet. */
  open: number
  /** Where its traces go, where files have numbers; and how many are in there. */
  file: TraceFile | undefined
  written: number
  /** Other settings have taken its place; it only writes what it has begun. */
  isOver: boolean
}

/** Files are complete once the scope has closed. Problems with them are logged. */
export const make = Effect.fnUntraced(function* (
  registry: RegisteredModels,
  options: Partial<TraceSettings>,
): Effect.fn.Return<Tracing, never, Scope.Scope> {
  const clock = yield* Clock.Clock
  const runFork = Effect.runForkWith(yield* Effect.context<never>())
  const initial: TraceSettings = { ...defaults, ...options }
  const path = initial.file
  let global: TraceChanges = {}
  const models = new Map<string, TraceChanges>()
  let nextId = 1
  let nextNumber = 0
  /** For traces that go into one file. */
  let common: TraceFile | undefined
  const files = new Set<TraceFile>()
  const samplers = new Map<string, Sampler>()
  let isOn = false

  const tell = (problem: string) => void runFork(Effect.logError(problem))
  const open = (name: string) => {
    const file = new TraceFile(name, tell)
    files.add(file)
    return file
  }
  const close = (sampler: Sampler) => {
    const { file } = sampler
    sampler.file = undefined
    sampler.written = 0
    void file?.close().then(() => files.delete(file))
  }

  const effective = (changes: TraceChanges = {}): TraceSettings => ({ ...initial, ...given(global), ...given(changes) })

  /** New settings count from zero, and write into new files where these have numbers. */
  const restart = (model: string) => {
    const before = samplers.get(model)
    if (before !== undefined) {
      before.isOver = true
      if (before.open === 0) close(before)
    }
    const changes = model === "" ? {} : models.get(model)
    if (changes === undefined) samplers.delete(model)
    else {
      const settings = effective(changes)
      samplers.set(model, { settings, seen: 0, open: 0, file: undefined, written: 0, isOver: false })
    }
  }
  const update = () => {
    isOn = samplers.values().some(({ settings }) => isSampled(settings))
  }
  restart("")
  update()

  const write = (sampler: Sampler, elements: string) => {
    const { count, logFrequency } = sampler.settings
    sampler.open -= 1
    if (logFrequency === 0 && count === -1) {
      common ??= open(path)
      return common.write(elements)
    }
    sampler.file ??= open(`${path}.${nextNumber++}`)
    sampler.file.write(elements)
    sampler.written += 1
    const isLast = sampler.open === 0 && (sampler.isOver || count === 0)
    if (isLast || sampler.written === logFrequency) close(sampler)
  }

  const sample = (wire: WireRequest): RequestTrace | undefined => {
    const found = samplers.get(wire.modelName) ?? samplers.get("")
    if (found === undefined || !isSampled(found.settings)) return undefined
    const model = registry.get(wire.modelName, wire.modelVersion)
    if (Result.isFailure(model)) return undefined
    found.seen += 1
    if (found.seen % found.settings.rate !== 0) return undefined
    if (found.settings.count > 0) {
      found.settings = { ...found.settings, count: found.settings.count - 1 }
      update()
    }
    found.open += 1
    const { levels } = found.settings
    const {
      description: { version },
    } = model.success
    return new RequestTrace({
      nextId: () => nextId++,
      wire,
      version,
      levels,
      done: (elements) => write(found, elements),
    })
  }

  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...files].map((file) => file.close()))))

  const settings = (model: string) => (samplers.get(model) ?? samplers.get(""))?.settings ?? initial
  return {
    settings,
    change: (model, changes) => {
      if (Object.keys(changes).length === 0) return settings(model)
      if (model === "") {
        global = { ...global, ...changes }
        for (const name of ["", ...models.keys()]) restart(name)
      } else {
        const own = { ...models.get(model), ...changes }
        if (Object.keys(given(own)).length === 0) models.delete(model)
        else models.set(model, own)
        restart(model)
      }
      update()
      return settings(model)
    },
    isOn: () => isOn,
    now: () => Number(clock.monotonicTimeNanosUnsafe()),
    sample,
  }
})

const isSampled = ({ levels, rate, count, file }: TraceSettings): boolean =>
  levels.length > 0 && rate > 0 && count !== 0 && file !== ""

/** Without what falls back. */
const given = (changes: TraceChanges): Partial<TraceSettings> =>
  Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))

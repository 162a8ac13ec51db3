/**
 * Which model answers to a name and a version, on one server. The front ends ask it for every request; nothing here loads or
 * unloads, but what does (Loader.ts, ModelRepository.ts) puts models in and takes them out meanwhile.
 */
import { Result } from "effect"
import { type InferenceError, InvalidRequest, ModelNotFound } from "../error/InferenceError.ts"
import * as NamedCalls from "../call/NamedCalls.ts"
import type { RunningModel } from "../running/RunningModel.ts"

/** By the name of their model. Empty for one of which nothing is known. */
type Absent = (name: string) => ReadonlyArray<string>

/** Models by name and version, to be looked at and to be asked. */
export interface RegisteredModels extends NamedCalls.NamedCalls {
  /**
   * The model of that version, or its highest version where `version` is empty. Fails with ModelNotReady for a version that is
   * among `absent`, and with ModelNotFound for any other.
   */
  readonly get: (name: string, version: string) => Result.Result<RunningModel, InferenceError>
  /** All versions of a model, the lowest first; empty for an unknown name. */
  readonly versions: (name: string) => ReadonlyArray<RunningModel>
  /** Versions of a model that are known and not here: they come, go, have been unloaded or could not be loaded. */
  readonly absent: Absent
  /** Every version of every model, in the order they were registered. */
  readonly models: ReadonlyArray<RunningModel>
}

/** A registry that models may enter and leave. */
export interface OpenRegistry extends RegisteredModels {
  /** From now on these are all versions of a model, and none where there are none. Who has an older one keeps it. */
  readonly replace: (name: string, versions: ReadonlyArray<RunningModel>) => void
  /** Calls the listener after every change, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
  /** Asks this, too, for what is absent, until the returned function is called. What is here is never absent. */
  readonly addAbsent: (absent: Absent) => () => void
}

/** @throws TypeError where two models have the same name and version */
export const make = (models: ReadonlyArray<RunningModel>): OpenRegistry => {
  const byName = new Map<string, ReadonlyArray<RunningModel>>()
  const listeners = new Set<() => void>()
  const absences = new Set<Absent>()
  let all = models
  for (const model of models) {
    const versions = byName.get(model.name) ?? []
    if (versions.some(({ version }) => version === model.version)) {
      throw new TypeError(`Model '${model.name}' version ${model.version} is given twice.`)
    }
    byName.set(model.name, inOrder([...versions, model]))
  }
  return {
    get models() {
      return all
    },
    replace: (name, versions) => {
      if (versions.length === 0) byName.delete(name)
      else byName.set(name, inOrder(versions))
      const first = all.findIndex((model) => model.name === name)
      const others = all.filter((model) => model.name !== name)
      all = others.toSpliced(first < 0 ? others.length : first, 0, ...versions)
      for (const listener of listeners) listener()
    },
    onChange: (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    addAbsent: (absent) => {
      absences.add(absent)
      return () => void absences.delete(absent)
    },
    ...byVersion(
      (name) => byName.get(name) ?? [],
      (name) => [...absences].flatMap((absent) => absent(name)),
    ),
  }
}

/** `versionsOf` a name, the lowest first; `known` of it, here or not. */
export const byVersion = (
  versionsOf: RegisteredModels["versions"],
  known: Absent,
): Omit<RegisteredModels, "models"> => {
  const absent: Absent = (name) => {
    const versions = versionsOf(name)
    return known(name).filter((version) => !versions.some((model) => model.version === version))
  }
  const get: RegisteredModels["get"] = (name, version) => {
    const versions = versionsOf(name)
    const wanted = version.startsWith("0") ? version.replace(/^0+(?=[0-9])/, "") : version
    const model = version === "" ? versions.at(-1) : versions.find((other) => other.version === wanted)
    if (model !== undefined) return Result.succeed(model)
    const others = absent(name)
    if (others.includes(wanted)) return Result.fail(NamedCalls.notReady({ name, version: wanted }))
    return Result.fail(notFound(name, version, versions.length + others.length > 0))
  }
  return { versions: versionsOf, absent, get, ...NamedCalls.make(get) }
}

export const inOrder = (versions: ReadonlyArray<RunningModel>): ReadonlyArray<RunningModel> =>
  versions.toSorted((a, b) => Number(a.version) - Number(b.version))

const notFound = (name: string, version: string, isKnown: boolean): InvalidRequest | ModelNotFound => {
  const isInteger = version === "" || (/^-?[0-9]{1,20}$/.test(version) && isLong(BigInt(version)))
  if (!isInteger || version.startsWith("-")) {
    const details = isInteger ? "" : " (details: stol)"
    const problem = `failed to get model version from specified version string '${version}'${details}`
    return new InvalidRequest({ message: `${problem}, version should be an integral value > 0` })
  }
  const unknown = `Request for unknown model: '${name}'`
  if (!isKnown) return new ModelNotFound({ message: `${unknown} is not found` })
  return new ModelNotFound({
    message: version === "" ? `${unknown} has no available versions` : `${unknown} version ${version} is not found`,
  })
}

const isLong = (value: bigint): boolean => BigInt.asIntN(64, value) === value

/**
 * Which model answers to a name and a version, on one server. The front ends ask it for every request; nothing here loads or
 * unloads, but what does (Loader.ts, ModelRepository.ts) puts models in and takes them out meanwhile.
 */
import { Result } from "effect"
import { InvalidRequest, ModelNotFound } from "../Errors.ts"
import * as NamedCalls from "../calls/NamedCalls.ts"
import type { RunningModel } from "./RunningModel.ts"

/** Models by name and version, to be looked at and to be asked. */
export interface RegisteredModels extends NamedCalls.NamedCalls {
  /** The model of that version, or its highest version where `version` is empty. */
  readonly get: (name: string, version: string) => Result.Result<RunningModel, ModelNotFound | InvalidRequest>
  /** All versions of a model, the lowest first; empty for an unknown name. */
  readonly versions: (name: string) => ReadonlyArray<RunningModel>
  /** Every version of every model, in the order they were registered. */
  readonly models: ReadonlyArray<RunningModel>
}

/** A registry that models may enter and leave. */
export interface OpenRegistry extends RegisteredModels {
  /** From now on these are all versions of a model, and none where there are none. Who has an older one keeps it. */
  readonly replace: (name: string, versions: ReadonlyArray<RunningModel>) => void
  /** Calls the listener after every change, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
}

/** @throws TypeError where two models have the same name and version */
export const make = (models: ReadonlyArray<RunningModel>): OpenRegistry => {
  const byName = new Map<string, ReadonlyArray<RunningModel>>()
  const listeners = new Set<() => void>()
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
    ...byVersion((name) => byName.get(name) ?? []),
  }
}

/** `versions` of a name, the lowest first. */
export const byVersion = (versions: RegisteredModels["versions"]): Omit<RegisteredModels, "models"> => {
  const get = getFrom(versions)
  return { versions, get, ...NamedCalls.make(get) }
}

const getFrom =
  (versionsOf: RegisteredModels["versions"]): RegisteredModels["get"] =>
  (name, version) => {
    const versions = versionsOf(name)
    const wanted = version.startsWith("0") ? version.replace(/^0+(?=[0-9])/, "") : version
    const model = version === "" ? versions.at(-1) : versions.find((other) => other.version === wanted)
    return model === undefined ? Result.fail(notFound(name, version, versions)) : Result.succeed(model)
  }

export const inOrder = (versions: ReadonlyArray<RunningModel>): ReadonlyArray<RunningModel> =>
  versions.toSorted((a, b) => Number(a.version) - Number(b.version))

const notFound = (
  name: string,
  version: string,
  versions: ReadonlyArray<RunningModel>,
): InvalidRequest | ModelNotFound => {
  const isInteger = version === "" || (/^-?[0-9]{1,20}$/.test(version) && isLong(BigInt(version)))
  if (!isInteger || version.startsWith("-")) {
    const details = isInteger ? "" : " (details: stol)"
    const problem = `failed to get model version from specified version string '${version}'${details}`
    return new InvalidRequest({ message: `${problem}, version should be an integral value > 0` })
  }
  const unknown = `Request for unknown model: '${name}'`
  return new ModelNotFound({
    message: versions.length === 0 ? `${unknown} is not found` : `${unknown} version ${version} is not found`,
  })
}

const isLong = (value: bigint): boolean => BigInt.asIntN(64, value) === value

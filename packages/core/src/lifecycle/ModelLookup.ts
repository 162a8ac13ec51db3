/** Looks up models by name and version. A failed lookup has the protocol's error message. */
import { Result } from "effect"
import * as NamedCalls from "../call/NamedCalls.ts"
import { type InferenceError, InvalidRequest, ModelNotFound } from "../error/InferenceError.ts"
import { notReady } from "../error/Refusal.ts"
import type { RunningModel } from "../running/RunningModel.ts"

/** Models by name and version, to inspect and to call. */
export interface RegisteredModels extends NamedCalls.NamedCalls {
  /**
   * The model of that version, or its highest version where `version` is empty. Fails with ModelNotReady for a version
   * that is among `absent`, and with ModelNotFound for any other.
   */
  readonly get: (name: string, version: string) => Result.Result<RunningModel, InferenceError>
  /** All versions of a model, the lowest first; empty for an unknown name. */
  readonly versions: (name: string) => ReadonlyArray<RunningModel>
  /** Versions of a model that are known and take no requests: they are loading, draining, unloaded or failed. */
  readonly absent: (name: string) => ReadonlyArray<string>
  /** Every version of every model, in the order they were registered. */
  readonly models: ReadonlyArray<RunningModel>
}

/** Lookups over `versions`, the lowest first, and the versions that are known and `absent`. */
export const make = ({
  versions,
  absent,
}: Pick<RegisteredModels, "versions" | "absent">): Omit<RegisteredModels, "models"> => {
  const get: RegisteredModels["get"] = (name, version) =>
    find({ versionsOf: versions, absentOf: absent }, name, version)
  return { versions, absent, get, ...NamedCalls.make(get) }
}

/** Versions of a model by its id. Without namespaces, an id is the model's name. */
interface VersionsById {
  readonly versionsOf: RegisteredModels["versions"]
  readonly absentOf: RegisteredModels["absent"]
}

/** Looks a version up by the id of its model. */
export const find = (
  { versionsOf, absentOf }: VersionsById,
  id: string,
  version: string,
): Result.Result<RunningModel, InferenceError> => {
  const found = versionsOf(id)
  const normalized = version.startsWith("0") ? version.replace(/^0+(?=[0-9])/, "") : version
  const model = version === "" ? found.at(-1) : found.find(({ description }) => description.version === normalized)
  if (model !== undefined) return Result.succeed(model)
  const others = absentOf(id)
  if (others.includes(normalized)) return Result.fail(notReady({ name: id, version: normalized }))
  return Result.fail(notFound(id, version, found.length + others.length > 0))
}

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

/**
 * Which model answers to a name and a version. The front ends ask it for every request; nothing here loads or unloads.
 */
import { Context, Result } from "effect"
import { InvalidRequest, ModelNotFound } from "./Errors.ts"
import type { RunningModel } from "./RunningModel.ts"

export class Registry extends Context.Service<
  Registry,
  {
    /** The model of that version, or its highest version where `version` is empty. */
    readonly get: (name: string, version: string) => Result.Result<RunningModel, ModelNotFound | InvalidRequest>
    /** All versions of a model, the lowest first; empty for an unknown name. */
    readonly versions: (name: string) => ReadonlyArray<RunningModel>
    /** Every version of every model, in the order they were registered. */
    readonly models: ReadonlyArray<RunningModel>
  }
>()("@nereid/core/Registry") {
  /** @throws TypeError where two models have the same name and version */
  static make(models: ReadonlyArray<RunningModel>): Registry["Service"] {
    const byName = new Map<string, Array<RunningModel>>()
    for (const model of models) {
      const versions = byName.get(model.name) ?? []
      if (versions.some(({ version }) => version === model.version)) {
        throw new TypeError(`Model '${model.name}' version ${model.version} is given twice.`)
      }
      versions.push(model)
      byName.set(
        model.name,
        versions.toSorted((a, b) => Number(a.version) - Number(b.version)),
      )
    }
    return Registry.of({
      models,
      versions: (name) => byName.get(name) ?? [],
      get: (name, version) => {
        const versions = byName.get(name) ?? []
        const wanted = version.startsWith("0") ? version.replace(/^0+(?=[0-9])/, "") : version
        const model = version === "" ? versions.at(-1) : versions.find((other) => other.version === wanted)
        return model === undefined ? Result.fail(notFound(name, version, versions)) : Result.succeed(model)
      },
    })
  }
}

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

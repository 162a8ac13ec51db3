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
        const versions = byName.get(name)
        const unknown = `Request for unknown model: '${name}'`
        if (versions === undefined) return Result.fail(new ModelNotFound({ message: `${unknown} is not found` }))
        if (version !== "" && !/^[0-9]+$/.test(version)) {
          const problem = `failed to get model version from specified version string '${version}'`
          const rule = "(details: stol), version should be an integral value > 0"
          return Result.fail(new InvalidRequest({ message: `${problem} ${rule}` }))
        }
        const model =
          version === "" ? versions.at(-1) : versions.find((other) => other.version === String(Number(version)))
        return model === undefined
          ? Result.fail(new ModelNotFound({ message: `${unknown} version ${version} is not found` }))
          : Result.succeed(model)
      },
    })
  }
}

/**
 * Which model answers to a name and a version. The front ends ask it for every request, and handlers that choose a model at
 * run time; nothing here loads or unloads, but what does (ModelRepository.ts) puts models in and takes them out meanwhile.
 */
import { Context, Effect, Layer, Result, type Scope } from "effect"
import { InvalidRequest, ModelNotFound } from "../Errors.ts"
import * as NamedCalls from "../calls/NamedCalls.ts"
import type { RunningModel } from "./RunningModel.ts"

export class Registry extends Context.Service<
  Registry,
  NamedCalls.NamedCalls & {
    /** The model of that version, or its highest version where `version` is empty. */
    readonly get: (name: string, version: string) => Result.Result<RunningModel, ModelNotFound | InvalidRequest>
    /** All versions of a model, the lowest first; empty for an unknown name. */
    readonly versions: (name: string) => ReadonlyArray<RunningModel>
    /** Every version of every model, in the order they were registered. */
    readonly models: ReadonlyArray<RunningModel>
  }
>()("@nereid/core/Registry") {
  /**
   * For handlers: the models that the server serves which is built together with this layer, once it has begun to.
   *
   * ```ts
   * const RouteLive = Model.each(Route, Effect.map(Registry, (models) => ({ MODEL, x }) => models.infer(MODEL, { x })))
   *
   * Server.layer([Route, Bert]).pipe(Layer.provide([RouteLive, BertLive]), Layer.provide(Registry.layer))
   * ```
   */
  static readonly layer: Layer.Layer<Registry | Served> = Layer.effectContext(Effect.sync(() => shared()))

  /** @throws TypeError where two models have the same name and version */
  static make(models: ReadonlyArray<RunningModel>): OpenRegistry {
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
    const versions = (name: string) => byName.get(name) ?? []
    const get = getFrom(versions)
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
      versions,
      get,
      ...NamedCalls.make(get),
    }
  }
}

/** A registry that models may enter and leave. */
export type OpenRegistry = Registry["Service"] & {
  /** From now on these are all versions of a model, and none where there are none. Who has an older one keeps it. */
  readonly replace: (name: string, versions: ReadonlyArray<RunningModel>) => void
  /** Calls the listener after every change, until the returned function is called. */
  readonly onChange: (listener: () => void) => () => void
}

/** Where servers say what they serve, for Registry.layer. */
export class Served extends Context.Service<
  Served,
  {
    /** Until the scope closes. */
    readonly include: (
      registry: Pick<Registry["Service"], "models" | "versions">,
    ) => Effect.Effect<void, never, Scope.Scope>
  }
>()("@nereid/core/Registry/Served") {}

const shared = (): Context.Context<Registry | Served> => {
  const registries = new Set<Pick<Registry["Service"], "models" | "versions">>()
  const versions = (name: string) => [...registries].flatMap((registry) => registry.versions(name))
  const get = getFrom(versions)
  const registry: Registry["Service"] = {
    get models() {
      return [...registries].flatMap(({ models }) => models)
    },
    versions,
    get,
    ...NamedCalls.make(get),
  }
  const served = Served.of({
    include: (registry) =>
      Effect.acquireRelease(
        Effect.sync(() => void registries.add(registry)),
        () => Effect.sync(() => registries.delete(registry)),
      ),
  })
  return Context.add(Context.make(Registry, registry), Served, served)
}

const getFrom =
  (versionsOf: Registry["Service"]["versions"]): Registry["Service"]["get"] =>
  (name, version) => {
    const versions = versionsOf(name)
    const wanted = version.startsWith("0") ? version.replace(/^0+(?=[0-9])/, "") : version
    const model = version === "" ? versions.at(-1) : versions.find((other) => other.version === wanted)
    return model === undefined ? Result.fail(notFound(name, version, versions)) : Result.succeed(model)
  }

const inOrder = (versions: ReadonlyArray<RunningModel>): ReadonlyArray<RunningModel> =>
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

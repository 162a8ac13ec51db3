/** Fixture of the repository tests: a repository on disk, opened without a port. */
import { KeyedLock } from "@nereid/core/internal/lifecycle/KeyedLock"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { Effect } from "effect"
import { Tensor } from "@nereid/core"
import type { LoadOverrides, OpenRepository } from "@nereid/core/internal/lifecycle/ModelRepository"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { infer } from "@nereid/core/internal/running/CallableModel"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import * as Repository from "./Repository.ts"

const noOverrides: LoadOverrides = { files: new Map() }

/** Opens a repository with a separate registry, as a server does, in addition to these models in code. */
export const open = Effect.fnUntraced(function* (
  fixture: { readonly path: string },
  options: Partial<Repository.Options> = {},
  models: ReadonlyArray<RunningModel> = [],
) {
  const registry = ModelStore.of(models)
  const server = { store: registry, lock: new KeyedLock() }
  const opened = yield* Repository.open({ directories: [fixture.path], exitOnError: false, ...options })(server)
  yield* opened.begin
  /** Calls a model with 0 and returns the output. Without a version, the server chooses one. */
  const call = (name: string, version = "") =>
    Effect.gen(function* () {
      const model = yield* Effect.fromResult(registry.get(name, version))
      const shape = model.description.maxBatchSize > 0 ? [1, 1] : [1]
      const [output] = yield* callModel(model, [Tensor.make("FP32", shape, new Float32Array(1))])
      return [...(output?.data ?? [])][0]
    })
  const load = (name: string, overrides: Partial<LoadOverrides> = {}) =>
    control(opened).load(name, { ...noOverrides, ...overrides })
  return {
    ...opened,
    registry,
    /** The configuration that a model was loaded with. */
    configuration: (model: RunningModel | undefined) =>
      model === undefined ? undefined : registry.versionOf(model)?.configuration?.(),
    call,
    load,
    unload: (name: string, dependents = false) => control(opened).unload(name, dependents),
  }
})

/** Returns a function that creates repositories of one scripted model, loaded or not. */
export const scripts = <Fixture extends OnDisk, E, R>(repository: Effect.Effect<Fixture, E, R>) =>
  Effect.fnUntraced(function* (script: string, config: string, file = "model.ts") {
    const fixture = yield* repository
    fixture.write(`m/1/${file}`, script)
    fixture.write("m/config.pbtxt", config)
    const opened = yield* open(fixture, { control: "explicit", load: ["m"] })
    const model = (): RunningModel => {
      const [found] = opened.registry.models
      if (found === undefined) throw new Error(opened.index()[0]?.reason)
      return found
    }
    return { fixture, ...opened, model }
  })

interface OnDisk {
  readonly path: string
  /** A file, by its path below the repository. */
  readonly write: (file: string, content: string) => void
}

const control = ({ control }: OpenRepository) => {
  if (control === undefined) throw new Error("nobody may load models here")
  return control
}

/** Calls a model and returns the outputs in signature order. The first input determines the number of rows. */
export const callModel = (model: RunningModel, inputs: ReadonlyArray<TypedTensor | undefined>) => {
  const rows = model.description.maxBatchSize > 0 ? (inputs.find((tensor) => tensor !== undefined)?.shape[0] ?? 1) : 1
  return Effect.map(infer(model.calls, { id: "", inputs, rows, parameters: {}, deadline: undefined }), ({ outputs }) =>
    outputs.filter((tensor) => tensor !== undefined),
  )
}

/** A version of a model whose file is a script: imported, and made the layer that any handler in code is. */
import { Effect, type Layer, Result } from "effect"
import { createHash } from "node:crypto"
import { pathToFileURL } from "node:url"
import { InstanceContext, Model } from "@nereid/core"
import type { Fields } from "@nereid/core/Field"
import type { ServingOptions } from "@nereid/core/Provide"
import type { RepositoryModelClass } from "./Declaration.ts"
import * as InstanceGroups from "./InstanceGroups.ts"
import { LoadFailure, text } from "./LoadFailure.ts"
import type { ModelPlan, PlannedVersion } from "./ModelPlan.ts"
import type { Answer, Arguments, ModelScript, Request } from "./ModelScript.ts"

export const layer = Effect.fnUntraced(function* (
  { config, path }: ModelPlan,
  { version, file, stamp }: PlannedVersion,
  declared: RepositoryModelClass,
  serving: ServingOptions,
): Effect.fn.Return<Layer.Layer<unknown, { readonly message: string }>, LoadFailure> {
  const script = yield* load(file, stamp)
  const failing = (what: string) => (error: unknown) =>
    new LoadFailure({ message: `${what} of ${file} has failed: ${text(error)}` })
  const handler = Effect.gen(function* () {
    const { name, kind, gpu } = yield* InstanceContext
    const args: Arguments = {
      modelName: config.name,
      modelVersion: String(version),
      modelRepository: path,
      modelConfig: config,
      modelInstanceName: name,
      modelInstanceKind: kind,
      modelInstanceDeviceId: gpu,
    }
    const state = yield* Effect.acquireRelease(
      Effect.tryPromise({ try: async () => script.initialize?.(args), catch: failing("initialize") }),
      (state) =>
        Effect.tryPromise({ try: async () => script.finalize?.(state), catch: failing("finalize") }).pipe(
          Effect.catch(({ message }) => Effect.logError(message)),
        ),
    )
    const execute = config.schedulingChoice.case === "dynamicBatching" ? script.execute : oneByOne(script.execute)
    return async (requests: ReadonlyArray<Request>) => (await execute(requests, state)).map(result)
  })
  return Model.requests(declared, handler, { ...serving, instances: InstanceGroups.options(config) })
})

const load = Effect.fnUntraced(function* (file: string, stamp: string): Effect.fn.Return<ModelScript, LoadFailure> {
  const url = pathToFileURL(file)
  // Another address for other contents: a module is never loaded twice from the same one.
  url.searchParams.set("version", createHash("sha256").update(stamp).digest("hex").slice(0, 16))
  const module: { readonly default?: unknown } = yield* Effect.tryPromise({
    try: () => import(url.href),
    catch: (error) => new LoadFailure({ message: `cannot load ${file}: ${text(error)}` }),
  })
  if (isScript(module.default)) return module.default
  return yield* new LoadFailure({ message: `${file} must export a script by default, as ModelScript.define makes it` })
})

const isScript = (value: unknown): value is ModelScript =>
  typeof value === "object" && value !== null && "execute" in value && typeof value.execute === "function"

/** Each request is a batch of its own, and fails alone. */
const oneByOne =
  (execute: ModelScript["execute"]): ModelScript["execute"] =>
  async (requests, state) => {
    const answers: Array<Answer> = []
    for (const request of requests) {
      try {
        const [answer, ...others] = await execute([request], state)
        const isOne = answer !== undefined && others.length === 0
        answers.push(isOne ? answer : new Error("execute must return one answer to one request"))
      } catch (error) {
        answers.push(error instanceof Error ? error : new Error(String(error)))
      }
    }
    return answers
  }

/** Whether an answer fits the signature is looked at once it is there. */
const result = (answer: Answer): Result.Result<Model.Batched<Fields>, Error> =>
  answer instanceof Error ? Result.fail(answer) : Result.succeed(answer as Model.Batched<Fields>)

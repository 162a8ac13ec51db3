/** Modules that do not export what a server needs, by their messages. As a command: test/programs/serve.test.ts. */
import { expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Effect } from "effect"
import * as ModelModule from "./ModelModule.ts"

class Shout extends Model.Service<Shout>()("shout", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { LOUD: Tensor.utf8() },
}) {}

const ShoutLive = Model.each(Shout, ({ TEXT }) => ({ LOUD: TEXT.toUpperCase() }))

const service = "export the class that extends Model.Service"

it.effect.each<readonly [string, Readonly<Record<string, unknown>>, string]>([
  ["nothing", {}, `exports nothing: ${service}, and its layer; a program that starts its own server is run with node`],
  ["other values", { count: 1, default: () => 1 }, `exports no model, only count, default: ${service}, and its layer`],
  [
    "many values",
    Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`value${index}`, index])),
    `exports no model, only value0, value1, value2, value3, value4, value5, value6, value7 and 2 more: ${service}`,
  ],
  ["only a layer", { ShoutLive }, `exports the layer ShoutLive, but no model: ${service} too`],
  [
    "only layers",
    { ShoutLive, default: ShoutLive },
    `exports the layers ShoutLive, default, but no model: ${service} too`,
  ],
  [
    "models in the default export",
    { default: { Shout, ShoutLive } },
    "exports no model: 'shout' is a member of its default export, and must be a named export",
  ],
  [
    "a script",
    { default: { execute: () => [] } },
    "exports no model, but a script of a model repository: serve its repository, with --model-repository",
  ],
  [
    "a model without a layer",
    { Shout },
    "exports no layer: export the result of Model.each, Model.batch or Onnx.layer for shout",
  ],
])("refuses a module that exports %s", ([, module, problem]) =>
  Effect.gen(function* () {
    const { message } = yield* Effect.flip(ModelModule.read("models.ts", module))
    expect(message).toContain(`models.ts ${problem}`)
  }),
)

it.effect("takes a model and a layer under any names, also the default export", () =>
  Effect.gen(function* () {
    expect(yield* ModelModule.read("models.ts", { default: Shout, live: ShoutLive })).toMatchObject({ models: [Shout] })
  }),
)

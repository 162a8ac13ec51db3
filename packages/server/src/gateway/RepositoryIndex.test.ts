/** The repository's extension without a repository, over both ports (C32). */
import { altered } from "../../../../test/fixtures/runningModel.ts"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Model, Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { serve } from "../TwoPorts.fixture.ts"

const { repositoryIndex, repositoryModelLoad, repositoryModelUnload } = GRPCInferenceService.method

const fields = { X: Tensor.scalar("INT32") }

class First extends Model.Service<First>()("first", { inputs: fields, outputs: fields }) {}
class Second extends Model.Service<Second>()("second", { inputs: fields, outputs: fields, version: 3 }) {}

const harness = Effect.gen(function* () {
  const layers = Layer.mergeAll(
    Model.each(First, ({ X }) => Effect.succeed({ X })),
    Model.each(Second, ({ X }) => Effect.succeed({ X })),
  )
  const [first, second] = yield* Effect.provideContext(Effect.all([First, Second]), yield* Layer.build(layers))
  const down = altered(second.model, { life: { isReady: () => false } })
  return yield* serve([first.model, down])
})

const ready = { name: "first", version: "1", state: "READY", reason: "" }
const unavailable = {
  name: "second",
  version: "3",
  state: "UNAVAILABLE",
  reason: "none of its instances is ready",
}

describe("index", () => {
  it.live("lists the models with version, state and reason; with a body or without", () =>
    Effect.gen(function* () {
      const { post, call } = yield* harness
      for (const body of ["", "{}", '{"ready":false}', '{"other":{"x":1}}']) {
        const response = yield* post("/v2/repository/index", body)
        expect(response, body).toMatchObject({ status: 200, text: JSON.stringify([ready, unavailable]) })
      }
      expect(yield* call(repositoryIndex, {})).toMatchObject({ response: { models: [ready, unavailable] } })
    }),
  )

  it.live("an unavailable and a running model: the reason, in every response", () =>
    Effect.gen(function* () {
      const weights = Effect.fail(new Error("no weights"))
      const layer = Layer.mergeAll(
        Model.each(First, ({ X }) => ({ X })),
        Model.orUnavailable(
          Second,
          Model.each(
            Second,
            Effect.as(weights, ({ X }: { readonly X: number }) => ({ X })),
          ),
        ),
      )
      const [first, second] = yield* Effect.provideContext(Effect.all([First, Second]), yield* Layer.build(layer))
      const { get, post, call } = yield* serve([first.model, second.model])
      const reason = "no weights"
      const models = [ready, { ...unavailable, reason }]
      expect((yield* post("/v2/repository/index", "")).text).toBe(JSON.stringify(models))
      expect(yield* call(repositoryIndex, {})).toMatchObject({ response: { models } })
      expect((yield* get("/v2/models/second/ready")).status).not.toBe(200)
      expect((yield* get("/v2/health/ready")).status).not.toBe(200)
      expect((yield* get("/v2/models/second")).status).toBe(200)
      const body = JSON.stringify({ inputs: [{ name: "X", datatype: "INT32", shape: [1], data: [7] }] })
      expect(yield* post("/v2/models/second/infer", body)).toMatchObject({ status: 503, tag: "ModelNotReady" })
      expect(yield* post("/v2/models/first/infer", body)).toMatchObject({ status: 200 })
    }),
  )

  it.live("lists only ready models on request", () =>
    Effect.gen(function* () {
      const { post, call } = yield* harness
      expect((yield* post("/v2/repository/index", '{"ready":true}')).text).toBe(JSON.stringify([ready]))
      const response = yield* call(repositoryIndex, { ready: true })
      expect(response).toMatchObject({ response: { models: [ready] } })
      expect("response" in response && response.response.models.length).toBe(1)
    }),
  )

  it.live.each(["1", '"true"', "null", "{}", "[]"])("refuses %s for 'ready'", (value) =>
    Effect.gen(function* () {
      const { post } = yield* harness
      expect(yield* post("/v2/repository/index", `{"ready":${value}}`)).toEqual({
        status: 400,
        tag: "InvalidRequest",
        text: `{"error":"Invalid value for 'ready': expected a boolean"}`,
      })
    }),
  )

  it.live("refuses invalid JSON, and another method", () =>
    Effect.gen(function* () {
      const { get, post } = yield* harness
      const broken = yield* post("/v2/repository/index", "{ready")
      expect(broken.status).toBe(400)
      expect(broken.text).toContain("failed to parse the request JSON buffer")
      expect(yield* get("/v2/repository/index")).toMatchObject({ status: 405 })
    }),
  )
})

describe("control", () => {
  const refusal = "explicit model load / unload is not allowed if polling is enabled"

  it.live("to load and to unload is refused, whatever the model and the body", () =>
    Effect.gen(function* () {
      const { post, call } = yield* harness
      for (const path of ["models/first/load", "models/first/unload", "models/unknown/load"]) {
        for (const body of ["", '{"parameters":{"config":"{}"}}', "{broken"]) {
          expect(yield* post(`/v2/repository/${path}`, body), path).toEqual({
            status: 503,
            tag: "Unavailable",
            text: `{"error":"${refusal}"}`,
          })
        }
      }
      const refused = { code: 14, message: refusal, tag: "Unavailable" }
      expect(yield* call(repositoryModelLoad, { modelName: "first" })).toEqual(refused)
      expect(yield* call(repositoryModelUnload, { modelName: "first" })).toEqual(refused)
    }),
  )
})

describe("a choice of repository", () => {
  it.live("is not supported", () =>
    Effect.gen(function* () {
      const { post, call } = yield* harness
      const message = "'repository_name' specification is not supported"
      for (const path of ["mine/index", "mine/models/first/load", "mine/models/first/unload"]) {
        const refused = { status: 501, tag: "Unsupported", text: JSON.stringify({ error: message }) }
        expect(yield* post(`/v2/repository/${path}`, ""), path).toEqual(refused)
      }
      const refused = { code: 12, message, tag: "Unsupported" }
      expect(yield* call(repositoryIndex, { repositoryName: "mine" })).toEqual(refused)
      expect(yield* call(repositoryModelLoad, { repositoryName: "mine", modelName: "first" })).toEqual(refused)
      expect(yield* call(repositoryModelUnload, { repositoryName: "mine", modelName: "first" })).toEqual(refused)
    }),
  )
})

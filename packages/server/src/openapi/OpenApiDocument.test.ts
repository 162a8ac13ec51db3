/** The OpenAPI document as the models change: versions, labels, many models, and names that others do not expect. */
import { Result } from "effect"
import { describe, expect, it } from "vitest"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import { ModelVersion } from "@nereid/core/internal/lifecycle/ModelVersion"
import * as PlaceholderModel from "@nereid/core/internal/lifecycle/PlaceholderModel"
import { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { Model, Tensor } from "@nereid/core"
import * as Gateway from "../gateway/Gateway.ts"
import * as OpenApiDocument from "./OpenApiDocument.ts"

class Any extends Model.Service<Any>()("any", {
  inputs: { X: Tensor.FP32(2) },
  outputs: { Y: Tensor.FP32(2) },
}) {}

const placeholder = PlaceholderModel.make(Any.definition)

const model = (name: string, version = "1", description: Partial<RunningModel["description"]> = {}) =>
  new RunningModel({
    description: { ...placeholder.description, name, version, ...description },
    calls: placeholder.calls,
    life: placeholder.life,
  })

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: { readonly operationId: string } } }
  readonly components: { readonly schemas: { readonly [name: string]: object } }
  readonly tags: ReadonlyArray<{ readonly name: string }>
  readonly "x-nereid-omitted-models"?: ReadonlyArray<string>
}

const make = (store: ModelStore) => {
  const gateway = Gateway.make(store, { id: "nereid", version: "1" })
  const request = OpenApiDocument.make(gateway, { restrictedApis: () => undefined, routes: [] })
  const whole = () =>
    new Promise<OpenApiDocument.OpenApiDocument>((resolve) =>
      request((document) => resolve(Result.getOrThrow(document))),
    )
  const read = async (): Promise<Document> => JSON.parse(new TextDecoder().decode((await whole()).bytes))
  const concrete = async () =>
    Object.keys((await read()).paths).filter((path) => /^\/v2\/models\/[^{]+\/infer$/.test(path))
  return { request, whole, read, concrete }
}

it("changes with the models, and is the same object while they do not change", async () => {
  const store = ModelStore.of([model("a")])
  const { whole, concrete } = make(store)
  const first = await whole()
  expect(await whole()).toBe(first)
  expect(await concrete()).toEqual(["/v2/models/a/infer"])
  store.serve("b", [ModelVersion.ready(model("b"))])
  expect(await concrete()).toEqual(["/v2/models/a/infer", "/v2/models/b/infer"])
  expect((await whole()).etag).not.toBe(first.etag)
  store.serve("b", [])
  expect((await whole()).etag).toBe(first.etag)
})

it("has the paths of each version of a model with several, and the highest without a version", async () => {
  const store = ModelStore.of([model("a", "2"), model("a", "10")])
  const { read, concrete } = make(store)
  expect((await concrete()).toSorted()).toEqual([
    "/v2/models/a/infer",
    "/v2/models/a/versions/10/infer",
    "/v2/models/a/versions/2/infer",
  ])
  const { paths } = await read()
  expect(paths["/v2/models/a/infer"]?.["post"]).toMatchObject({
    operationId: "infer_a",
    "x-nereid-model": { version: "10" },
  })
  expect(paths["/v2/models/a/versions/2/infer"]?.["post"]?.operationId).toBe("inferVersion_2_a")
})

it("has the labels that an output has now", async () => {
  let labels = ["cat"]
  const output = { name: "Y", datatype: "FP32", dims: [1], optional: false } as const
  const signature = {
    inputs: [],
    outputs: [
      {
        ...output,
        get labels() {
          return labels
        },
      },
    ],
  }
  const store = ModelStore.of([model("a", "1", { signature })])
  const { whole } = make(store)
  const text = async () => new TextDecoder().decode((await whole()).bytes)
  expect(await text()).toContain('"x-nereid-labels":["cat"]')
  labels = ["dog"]
  store.serve("b", [])
  expect(await text()).toContain('"x-nereid-labels":["dog"]')
})

it("has different paths, identifiers and schemas for names that differ in any character", async () => {
  const names = ["a b", "a_b", "a.b", "a+b", "ä", "{a}", "a?b", "a#b", "a%2Fb", "constructor", "x".repeat(500)]
  const { read, concrete } = make(ModelStore.of(names.map((name) => model(name))))
  const { paths, components, tags } = await read()
  expect(new Set(await concrete()).size).toBe(names.length)
  expect((await concrete()).map((path) => decodeURIComponent(path.split("/")[3] ?? ""))).toEqual(names)
  const ids = Object.values(paths).flatMap((item) => Object.values(item).map(({ operationId }) => operationId))
  expect(new Set(ids).size).toBe(ids.length)
  const schemas = Object.keys(components.schemas)
  expect(schemas.filter((name) => name.endsWith(".InferRequest")).length).toBe(names.length)
  for (const name of schemas) expect(name).toMatch(/^[\w.-]{1,100}$/)
  expect(tags.slice(0, names.length).map(({ name }) => name)).toEqual(names.map((name) => `models/${name}`))
})

it("names the models whose part is too large, and describes the others", async () => {
  const labels = Array.from({ length: 1000 }, (_, index) => `${index}`.padEnd(2000, "x"))
  const outputs = [{ name: "Y", datatype: "FP32", dims: [1000], optional: false, labels } as const]
  const large = model("large", "1", { signature: { inputs: [], outputs } })
  const { read, concrete } = make(ModelStore.of([large, model("small")]))
  expect((await read())["x-nereid-omitted-models"]).toEqual(["large"])
  expect(await concrete()).toEqual(["/v2/models/small/infer"])
})

describe("300 models", () => {
  const store = () => ModelStore.of(Array.from({ length: 300 }, (_, index) => model(`model-${index}`)))

  it("are all in the document, which is made once for all who wait", async () => {
    const { whole, concrete } = make(store())
    const [first, ...others] = await Promise.all([whole(), whole(), whole()])
    for (const other of others) expect(other).toBe(first)
    expect((await concrete()).length).toBe(300)
  })

  it("that change while the document is made are in the next one", async () => {
    const models = store()
    const { whole, concrete } = make(models)
    const before = whole()
    models.serve("model-0", [])
    const after = whole()
    expect((await after).etag).not.toBe((await before).etag)
    expect((await concrete()).length).toBe(299)
    expect(await whole()).toBe(await after)
  })
})

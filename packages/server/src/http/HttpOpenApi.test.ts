/** The OpenAPI document over a real socket: its routes, its tag, and its changes with the models. */
import { Effect, Layer, Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Model, Tensor } from "@nereid/core"
import { ModelStore } from "@nereid/core/internal/lifecycle/ModelStore"
import * as Gateway from "../gateway/Gateway.ts"
import { apis } from "../gateway/RestrictedApis.ts"
import * as InferencePaths from "../openapi/InferencePaths.ts"
import * as ProtocolPaths from "../openapi/ProtocolPaths.ts"
import * as ProtocolSchemas from "../openapi/ProtocolSchemas.ts"
import * as Server from "../Server.ts"
import * as HttpRoutes from "./HttpRoutes.ts"

class Refused extends Schema.TaggedError<Refused>()("Refused", { limit: Schema.Int }) {}

class Echo extends Model.Service<Echo>()("echo", {
  inputs: { X: Tensor.FP32(2, 3), N: Tensor.optional(Tensor.scalar("INT32"), { default: 7 }) },
  outputs: { LABEL: Tensor.labels(["cat", "dog"]), SCORES: Tensor.FP32(2) },
  parameters: { top: Schema.Literals(["a", "b"]), seed: Schema.optionalKey(Schema.BigInt) },
  errors: [[Refused, { http: 409 }]],
  maxBatchSize: 4,
}) {}

class Half extends Model.Service<Half>()("half", {
  inputs: { X: Tensor.FP16(1) },
  outputs: { X: Tensor.FP16(1) },
}) {}

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
}) {}

const layers = Layer.mergeAll(
  Model.each(Echo, () =>
    Effect.succeed({ LABEL: "cat" as const, SCORES: Tensor.make("FP32", [2], Float32Array.of(1, 2)) }),
  ),
  Model.each(Half, (sample) => Effect.succeed(sample)),
  Model.stream(Words, ({ TEXT }) => TEXT.split(" ").map((WORD) => ({ WORD }))),
)

const start = () => Server.start([Echo, Half, Words], layers, { http: 0, grpc: false, metrics: false })

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.stop())

const get = (headers: Record<string, string> = {}, port = server.http.port, method = "GET") =>
  fetch(`http://127.0.0.1:${port}/openapi.json`, { method, headers: { "accept-encoding": "identity", ...headers } })

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Record<string, unknown> } }
  readonly components: {
    readonly schemas: { readonly [name: string]: Record<string, unknown> }
    readonly securitySchemes: Record<string, unknown>
  }
  readonly tags: ReadonlyArray<{ readonly name: string }>
}

const read = async (port?: number): Promise<Document> => (await (await get({}, port)).json()) as Document

describe("the table of operations", () => {
  const schemas = ProtocolSchemas.make()
  const placed = [...InferencePaths.make(schemas), ...ProtocolPaths.make(schemas)]
  const gateway = Gateway.make(new ModelStore(), { id: "nereid", version: "1" })
  const routes = HttpRoutes.make(gateway, {
    maxInputSize: 1,
    forward: undefined,
    modelRoutes: [],
    restrictedApis: () => undefined,
  })
  const concrete = (path: string) => path.replaceAll(/\{(\w+)\}/g, (_, name) => (name === "model_version" ? "1" : "m"))

  it("has only operations that a route of the same API takes first", () => {
    for (const { path, method, operation } of placed) {
      const route = routes.find((route) => route.method.toLowerCase() === method && route.path.test(concrete(path)))
      expect(route?.api, `${method} ${path}`).toBe(operation.api)
    }
  })

  it("has an operation for each route", () => {
    const undocumented = routes.filter(
      (route) =>
        !placed.some(({ path, method }) => route.method.toLowerCase() === method && route.path.test(concrete(path))),
    )
    expect(undocumented.map(({ path }) => path.source)).toEqual([])
  })

  it("describes both paths of a route with an optional part", () => {
    const optional = routes.filter(({ path }) => path.source.includes(")?"))
    for (const { path, method } of optional) {
      const count = placed.filter((other) => other.method === method.toLowerCase() && path.test(concrete(other.path)))
      expect(count.length, path.source).toBeGreaterThanOrEqual(2)
    }
  })

  it("has different identifiers", () => {
    const ids = placed.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
  })
})

describe("a served model", () => {
  it("has its paths, tag, schemas, default, parameters and errors", async () => {
    const { paths, components, tags } = await read()
    expect(tags.map(({ name }) => name)).toEqual(["models/echo", "models/half", "models/words", ...apis])
    expect(paths["/v2/models/echo/infer"]?.["post"]).toMatchObject({
      operationId: "infer_echo",
      tags: ["models/echo"],
      "x-nereid-api": "inference",
      "x-nereid-model": { name: "echo", version: "1" },
      responses: {
        "409": {
          description: "Refused. Declared by the model",
          headers: { "nereid-error-detail": { content: { "application/json": {} } } },
        },
      },
    })
    const request = components.schemas["echo.1.GenerateRequest"]
    expect(request).toEqual({
      type: "object",
      properties: {
        id: { type: "string" },
        top: { type: "string", enum: ["a", "b"] },
        seed: { type: "integer" },
        parameters: { $ref: "#/components/schemas/RequestParameters" },
        X: {
          anyOf: [
            { type: "array", items: { type: "number", format: "float" }, minItems: 6, maxItems: 6 },
            {
              type: "array",
              items: { type: "array", items: { type: "number", format: "float" }, minItems: 3, maxItems: 3 },
              minItems: 2,
              maxItems: 2,
            },
          ],
        },
        N: { type: "integer", format: "int32", minimum: -(2 ** 31), maximum: 2 ** 31 - 1, default: 7 },
      },
      unevaluatedProperties: { type: ["string", "number", "boolean"] },
      required: ["X", "top"],
    })
    expect(components.schemas["echo.1.GenerateResponse"]).toMatchObject({
      properties: {
        LABEL: { type: "integer", enum: [0, 1], "x-enum-varnames": ["cat", "dog"] },
        SCORES: { type: "array", minItems: 2, maxItems: 2 },
      },
      required: ["model_name", "model_version", "LABEL", "SCORES"],
    })
  })

  it("with 16-bit floats has binary bodies alone, and a decoupled one has no infer", async () => {
    const { paths } = await read()
    const half = Object.keys(paths).filter((path) => path.startsWith("/v2/models/half/"))
    expect(half).toEqual(["/v2/models/half/infer"])
    expect(paths["/v2/models/half/infer"]?.["post"]).toMatchObject({
      requestBody: { content: { "application/octet-stream": {} } },
    })
    const words = Object.keys(paths).filter((path) => path.startsWith("/v2/models/words/"))
    expect(words).toEqual(["/v2/models/words/generate", "/v2/models/words/generate_stream"])
  })
})

describe("the response", () => {
  it("has a tag, by which a client need not read it again", async () => {
    const first = await get()
    const etag = first.headers.get("etag") ?? ""
    expect([first.status, first.headers.get("cache-control")]).toEqual([200, "no-cache"])
    for (const known of [etag, `W/${etag}`, `"x", ${etag}`, "*"]) {
      const second = await get({ "if-none-match": known })
      expect([second.status, await second.text()], known).toEqual([304, ""])
    }
    expect((await get({ "if-none-match": '"other"' })).status).toBe(200)
    expect((await get({}, server.http.port, "HEAD")).headers.get("etag")).toBe(etag)
  })

  it("is compressed for clients that accept it, with a different tag", async () => {
    const [plain, gzip] = await Promise.all([get(), get({ "accept-encoding": "gzip" })])
    expect(gzip.headers.get("content-encoding")).toBe("gzip")
    expect(await gzip.text()).toBe(await plain.text())
    expect(gzip.headers.get("etag")).not.toBe(plain.headers.get("etag"))
  })
})

it("the streams of the page are in the document where they are served, with the APIs that restrict them", async () => {
  const restrictions = [{ apis: ["statistics"], key: "admin-key", value: "b" }] as const
  await using paged = await Server.start([Echo, Half, Words], layers, {
    http: 0,
    grpc: false,
    metrics: false,
    dashboard: true,
    restrictedApis: { http: restrictions },
  })
  const { paths } = await read(paged.http.port)
  expect(paths["/live"]?.["get"]).toMatchObject({ security: [{ "header-admin-key": [] }] })
  expect(paths["/log"]?.["get"]?.["security"]).toBeUndefined()
  expect(Object.keys((await read()).paths).filter((path) => /^\/(live|log)$/.test(path))).toEqual([])
})

it("a restricted API names its header as a security scheme, and metadata restricts the document", async () => {
  const restrictions = [
    { apis: ["metadata", "model-config"], key: "user-key", value: "a" },
    { apis: ["statistics"], key: "admin-key", value: "b" },
  ] as const
  await using restricted = await Server.start([Echo, Half, Words], layers, {
    http: 0,
    grpc: false,
    metrics: false,
    restrictedApis: { http: restrictions },
  })
  const { port } = restricted.http
  expect((await get({}, port)).status).toBe(403)
  const document = (await (await get({ "user-key": "a" }, port)).json()) as Document
  expect(document.components.securitySchemes).toMatchObject({
    "header-user-key": { type: "apiKey", in: "header", name: "user-key" },
    "header-admin-key": { type: "apiKey", in: "header", name: "admin-key" },
  })
  const security = (path: string) => document.paths[path]?.["get"]?.["security"]
  expect(security("/v2")).toEqual([{ "header-user-key": [] }])
  expect(security("/v2/models/stats")).toEqual([{ "header-admin-key": [] }])
  expect(security("/v2/logging")).toBeUndefined()
})

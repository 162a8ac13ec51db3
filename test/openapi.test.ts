/**
 * The OpenAPI document of servers with many kinds of models, by a strict validator: the examples, models in code with
 * every declaration, a repository of ONNX files, scripts and ensembles, and texts that break formats.
 */
import { Validator } from "@seriousme/openapi-schema-validator"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Context, Effect, Layer, Schema } from "effect"
import { describe, expect, it } from "@effect/vitest"
import { Model, Tensor } from "@nereid/core"
import { Logging, Server } from "@nereid/server"
import * as StoredModels from "./conformance/StoredModels.ts"
import * as Models from "./conformance/Models.ts"
import * as Examples from "../examples/models.ts"

const free = { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false } as const

interface Document {
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: { readonly schemas: { readonly [name: string]: object } }
  readonly "x-nereid-omitted-models"?: ReadonlyArray<string>
}

interface Operation {
  readonly operationId: string
  readonly tags: ReadonlyArray<string>
  readonly parameters?: ReadonlyArray<{ readonly in?: string; readonly name?: string }>
}

const documentOf = Effect.fnUntraced(function* (served: Layer.Layer<Server.Server, unknown>) {
  const context = yield* Layer.build(served)
  const { http } = Context.get(context, Server.Server)
  const url = `http://127.0.0.1:${http?.port}`
  return yield* Effect.promise(async () => {
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document
    const index = await fetch(`${url}/v2/repository/index`, { method: "POST", body: '{"ready":true}' })
    const entries = (await index.json()) as ReadonlyArray<{ readonly name: string }>
    return { url, document, names: entries.map(({ name }) => name) }
  })
})

/** Every object of a document. */
function* objects(node: unknown): Generator<{ readonly [member: string]: unknown }> {
  if (typeof node !== "object" || node === null) return
  if (!Array.isArray(node)) yield { ...node }
  for (const member of Object.values(node)) yield* objects(member)
}

type Validates = (schema: object, value: unknown) => boolean

/** Fails for a document that is invalid; returns the validation of values by its schemas. */
const check = Effect.fnUntraced(function* (document: Document) {
  const { valid, errors } = yield* Effect.promise(() => new Validator().validate(structuredClone(document) as never))
  expect(errors).toBeUndefined()
  expect(valid).toBe(true)
  expect(document["x-nereid-omitted-models"]).toBeUndefined()

  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.values(item).map((operation) => ({ path, operation })),
  )
  const ids = operations.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { path, operation } of operations) {
    const named = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => name)
    const given = (operation.parameters ?? []).filter((parameter) => parameter.in === "path").map(({ name }) => name)
    expect(given.toSorted(), path).toEqual(named.toSorted())
  }
  for (const { $ref } of objects(document)) {
    if (typeof $ref !== "string") continue
    const found = $ref
      .replace(/^#\//, "")
      .split("/")
      .reduce<unknown>((node, key) => Reflect.get(Object(node), key), document)
    expect(found, $ref).toBeDefined()
  }

  // The official schema of OpenAPI leaves schemas themselves to the JSON Schema that compiles them.
  const ajv = new Ajv2020({ strict: false, validateFormats: false, discriminator: false })
  ajv.addSchema({ $id: "document", components: document.components }, "document")
  for (const name of Object.keys(document.components.schemas)) {
    expect(() => ajv.compile({ $ref: `document#/components/schemas/${name}` }), name).not.toThrow()
  }
  const validates: Validates = (schema: object, value: unknown) =>
    ajv.validate(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')), value)
  for (const body of objects(document)) {
    if (body["example"] === undefined || typeof body["schema"] !== "object" || body["schema"] === null) continue
    expect(validates(body["schema"], body["example"]), JSON.stringify(body["schema"])).toBe(true)
  }
  return validates
})

const isWhole = Effect.fnUntraced(function* (served: Layer.Layer<Server.Server, unknown>) {
  const { url, document, names } = yield* documentOf(served)
  const validates = yield* check(document)
  const tags = Object.values(document.paths).flatMap((item) => Object.values(item).flatMap(({ tags }) => tags))
  expect(names.length).toBeGreaterThan(0)
  for (const name of names) expect(tags).toContain(`models/${name}`)
  const answers = {
    ModelMetadata: (name: string) => `/v2/models/${encodeURIComponent(name)}`,
    ModelConfig: (name: string) => `/v2/models/${encodeURIComponent(name)}/config`,
    ModelStatisticsList: (name: string) => `/v2/models/${encodeURIComponent(name)}/stats`,
  }
  for (const [schema, path] of Object.entries(answers)) {
    for (const name of names) {
      const answer: unknown = yield* Effect.promise(async () => (await fetch(url + path(name))).json())
      const isValid = validates({ $ref: `#/components/schemas/${schema}` }, answer)
      expect(isValid, `${schema} of ${name}: ${JSON.stringify(answer)}`).toBe(true)
    }
  }
  return document
}, Effect.scoped)

describe("is valid and has every model", () => {
  it.live("of the examples", () => {
    const { AddSub, Digits, PhotographedDigit, Preprocess, Bert, Sentiment, Tokenize, Verdict, Words } = Examples
    const models = [AddSub, Digits, PhotographedDigit, Preprocess, Bert, Sentiment, Tokenize, Verdict, Words]
    const layer = Layer.mergeAll(
      Examples.AddSubLive,
      Examples.DigitsLive,
      Examples.PhotographedDigitLive,
      Examples.PreprocessLive,
      Examples.BertLive,
      Examples.SentimentLive,
      Examples.TokenizeLive,
      Examples.VerdictLive,
      Examples.WordsLive,
    )
    return isWhole(Server.layer(models, { ...free, routes: Examples.routes }).pipe(Layer.provide(layer)))
  })

  it.live("in code, with all kinds of tensors and batches", () =>
    isWhole(Server.layer(Models.models, free).pipe(Layer.provide(Models.layer))),
  )

  it.live(
    "of a repository with ONNX files, scripts and ensembles",
    () =>
      isWhole(
        Server.layer([], { ...free, logging: { error: false, warning: false } }).pipe(
          Layer.provide(StoredModels.layer),
        ),
      ),
    120_000,
  )

  it.live("with names, labels, texts and Schemas that break formats", () =>
    Effect.gen(function* () {
      const document = yield* isWhole(Server.layer(hostile.models, free).pipe(Layer.provide(hostile.layer)))
      expect(document.paths[`/v2/models/${encodeURIComponent(name)}/infer`]).toBeDefined()
    }),
  )
})

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 4,
  sequence: { state: { SUM: Tensor.scalar("INT32") }, maxIdle: "30 seconds" },
}) {}

const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUM } }) => ({
  outputs: { TOTAL: SUM + VALUE },
  state: { SUM: SUM + VALUE },
}))

describe("of a model with sequences", () => {
  const tensor = (rows = 1) => ({ name: "VALUE", datatype: "INT32", shape: [rows, 1], data: Array(rows).fill(2) })

  it.live("has the parameters of a sequence, and refuses what the server refuses", () =>
    Effect.gen(function* () {
      const { url, document } = yield* documentOf(Server.layer([Sums], free).pipe(Layer.provide(SumsLive)))
      const validates = yield* check(document)
      const send = (path: string, body: object) =>
        Effect.promise(async () => {
          const response = await fetch(url + path, { method: "POST", body: JSON.stringify(body) })
          return { status: response.status, headers: response.headers, answer: await response.json() }
        })
      const requests = (parameters: object | undefined, rows = 1) => [
        ["infer", "InferRequest", { inputs: [tensor(rows)], ...(parameters && { parameters }) }] as const,
        ...(rows > 1
          ? []
          : [["generate", "GenerateRequest", { VALUE: 2, ...(parameters && { parameters }) }] as const]),
      ]
      const cases = [
        [{ sequence_id: 1, sequence_start: true }, 1, 200],
        [{ sequence_id: "1", sequence_start: true, sequence_end: true, sequence_number: 1 }, 1, 200],
        [{ sequence_id: 1 }, 1, 200],
        [{ sequence_id: 0, sequence_start: true }, 1, 400],
        [{ sequence_id: "", sequence_start: true }, 1, 400],
        [{ sequence_id: "x".repeat(129), sequence_start: true }, 1, 400],
        [{ sequence_id: 1, sequence_start: "yes" }, 1, 400],
        [{ sequence_id: 1, sequence_number: 0 }, 1, 400],
        [{ sequence_id: 1, sequence_max_idle: 1_000_000 }, 1, 200],
        [{ sequence_id: 1, sequence_max_idle: 0 }, 1, 400],
        [{ sequence_start: true }, 1, 400],
        [undefined, 1, 400],
        [{ sequence_id: 2, sequence_start: true }, 2, 400],
      ] as const
      for (const [parameters, rows, status] of cases) {
        for (const [segment, schema, body] of requests(parameters, rows)) {
          const text = JSON.stringify([segment, body])
          const isValid = validates({ $ref: `#/components/schemas/sums.1.${schema}` }, body)
          expect([text, isValid]).toEqual([text, status === 200])
          const { status: actual } = yield* send(`/v2/models/sums/${segment}`, body)
          expect([text, actual]).toEqual([text, status])
        }
      }
    }).pipe(Effect.scoped),
  )

  it.live("has the error of a lost sequence, and its reason", () =>
    Effect.gen(function* () {
      const { url, document } = yield* documentOf(Server.layer([Sums], free).pipe(Layer.provide(SumsLive)))
      const validates = yield* check(document)
      const body = JSON.stringify({ inputs: [tensor()], parameters: { sequence_id: 9 } })
      const response = yield* Effect.promise(() => fetch(`${url}/v2/models/sums/infer`, { method: "POST", body }))
      const found: unknown = JSON.parse(response.headers.get("nereid-error-detail") ?? "")
      expect([response.status, response.headers.get("nereid-error"), found]).toEqual([
        400,
        "SequenceNotFound",
        { reason: "neverStarted" },
      ])
      const operation: unknown = document.paths["/v2/models/sums/infer"]?.["post"]
      expect(operation).toMatchObject({
        description:
          "Every request belongs to a sequence, by its parameters, and has one row. " +
          "A sequence expires after 30 seconds without requests",
        responses: {
          400: { headers: { "nereid-error": { schema: { examples: expect.arrayContaining(["SequenceNotFound"]) } } } },
        },
      })
      const [schema] = [...objects(operation)].filter((node) => "reason" in Object(node["properties"]))
      expect(validates(schema ?? {}, found)).toBe(true)
      expect(validates(schema ?? {}, { reason: "unknown" })).toBe(false)
    }).pipe(Effect.scoped),
  )
})

class Half extends Model.Service<Half>()("half", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { X: Tensor.scalar("INT32") },
  maxBatchSize: 4,
}) {}

const HalfLive = Model.each(Half, ({ X }) => (X < 0 ? Effect.die(new Error("negative")) : Effect.succeed({ X })))

/** Messages of a stream, until one has each of these texts. */
const messagesWith = async (url: string, ...texts: ReadonlyArray<string>): Promise<ReadonlyArray<unknown>> => {
  const { body } = await fetch(url)
  let read = ""
  for await (const chunk of body ?? []) {
    read += Buffer.from(chunk).toString()
    if (read.endsWith("\n\n") && texts.every((text) => read.includes(text))) break
  }
  return [...read.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data))
}

describe("of a server with a page", () => {
  it.live("describes the messages of its streams, and every member of them", () =>
    Effect.gen(function* () {
      const { url, document } = yield* documentOf(
        Server.layer([Half], { ...free, dashboard: { path: "/ops" } }).pipe(
          Layer.provide(HalfLive),
          Layer.provide(Logging.layer({ file: "/dev/null" })),
        ),
      )
      const streams = ["/ops/live", "/ops/log"].map((path) => document.paths[path]?.["get"])
      expect(streams.map((operation) => operation?.operationId)).toEqual(["liveStream", "logStream"])
      expect(streams.map((operation) => operation?.tags)).toEqual([["statistics"], ["logging"]])
      yield* check(document)

      // A message with a member that is not in its schema is invalid, too.
      const closed: Document = JSON.parse(JSON.stringify(document), (_, node) =>
        typeof node === "object" && node?.properties !== undefined ? { ...node, unevaluatedProperties: false } : node,
      )
      const validates = yield* check(closed)
      yield* Effect.promise(async () => {
        for (const x of [1, -1]) {
          const inputs = [{ name: "X", datatype: "INT32", shape: [1, 1], data: [x] }]
          await fetch(`${url}/v2/models/half/infer`, { method: "POST", body: JSON.stringify({ inputs }) })
        }
        const live = await messagesWith(`${url}/ops/live`, '"requests":1', '"BACKEND":1', '"batches":[', '"parts":[')
        const log = await messagesWith(`${url}/ops/log`, '"level":"ERROR"')
        for (const [schema, messages] of Object.entries({ LiveMessage: live, LogMessage: log })) {
          for (const message of messages) {
            const isValid = validates({ $ref: `#/components/schemas/${schema}` }, message)
            expect(isValid, `${schema}: ${JSON.stringify(message)}`).toBe(true)
          }
        }
        expect(validates({ $ref: "#/components/schemas/LogMessage" }, { type: "lines", lines: [{}] })).toBe(false)
      })
    }).pipe(Effect.scoped),
  )
})

const name = `<script>{x}\u2028"'%2F..?#`

class Odd extends Schema.TaggedError<Odd>()("#/$defs/~1%", { "a/b": Schema.String }) {}

interface Tree {
  readonly [child: string]: Tree
}

const Tree = Schema.Record(
  Schema.String,
  Schema.suspend((): Schema.Codec<Tree> => Tree),
).annotate({ identifier: "InferRequest", description: "*/ <img src=x onerror=alert(1)> \u0000" })

const hostile = (() => {
  class First extends Model.Service<First>()(name, {
    inputs: { ["__proto__"]: Tensor.FP32("$ref", -1), id: Tensor.json(Tree), parameters: Tensor.utf8() },
    outputs: {
      constructor: Tensor.labels(["", "</script>", "\u0000", "x".repeat(1000)]),
      model_name: Tensor.INT32(0),
      $defs: Tensor.json(Tree),
    },
    parameters: { "#": Schema.optionalKey(Schema.String.annotate({ identifier: "a/b~c" })), "": Schema.Literals([""]) },
    responseParameters: { __proto__: Schema.optionalKey(Schema.Finite) },
    errors: [Odd],
    maxBatchSize: 2 ** 31 - 1,
  }) {}
  class Second extends Model.Service<Second>()("$ref", {
    inputs: { X: Tensor.UINT64(1e9, 1e9, 1e9) },
    outputs: { X: Tensor.BOOL(...Array.from({ length: 40 }, () => 1)) },
  }) {}
  class Empty extends Model.Service<Empty>()("live", { inputs: {}, outputs: {} }) {}
  const never = () => Effect.never
  return {
    models: [First, Second, Empty],
    layer: Layer.mergeAll(Model.each(First, never), Model.each(Second, never), Model.each(Empty, never)),
  }
})()

/** Custom routes over a real socket: samples in and out, and their OpenAPI document. */
import { Effect, Layer, Schema, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Model, Tensor } from "@nereid/core"
import * as Server from "../Server.ts"

const Address = Schema.Struct({ street: Schema.String, number: Schema.Int }).annotate({ identifier: "Address" })

/** Every kind of field, in and out. */
const fields = {
  TEXT: Tensor.utf8(),
  LABEL: Tensor.labels(["cat", "dog"]),
  COUNT: Tensor.scalar("INT64"),
  RATE: Tensor.scalar("FP32"),
  YES: Tensor.scalar("BOOL"),
  WHERE: Tensor.json(Address),
  MATRIX: Tensor.FP32(2, "n"),
  BIG: Tensor.UINT64(-1),
  FLAGS: Tensor.BOOL(2),
  WORDS: Tensor.BYTES("w"),
  HALF: Tensor.FP16(1),
}

class Every extends Model.Service<Every>()("every", { inputs: fields, outputs: fields, maxBatchSize: 4 }) {}

class Alone extends Model.Service<Alone>()("alone", {
  inputs: { X: Tensor.INT32(2), SCALE: Tensor.optional(Tensor.scalar("INT32"), { default: 10 }) },
  outputs: { X: Tensor.INT32(2) },
  parameters: { OFFSET: Schema.optionalKey(Schema.Number) },
}) {}

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
}) {}

interface Tree {
  readonly inner: ReadonlyArray<Tree>
}

const Tree = Schema.Struct({ inner: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree)) })

class Deep extends Model.Service<Deep>()("deep", {
  inputs: { TREE: Tensor.json(Tree) },
  outputs: { TREE: Tensor.json(Tree) },
}) {}

class Odd extends Model.Service<Odd>()("odd", {
  inputs: { X: Tensor.scalar("INT32") },
  outputs: { BYTES: Tensor.BYTES(1) },
}) {}

const layers = Layer.mergeAll(
  Model.each(Every, (sample) => Effect.succeed(sample)),
  Model.each(Alone, ({ X, SCALE }, { parameters }) => {
    const offset = parameters.OFFSET ?? 0
    return Effect.succeed({
      X: Tensor.make(
        "INT32",
        [2],
        X.data.map((value) => value * SCALE + offset),
      ),
    })
  }),
  Model.stream(Words, ({ TEXT }) =>
    TEXT === "" ? Stream.fail("no words") : Stream.fromIterable(TEXT.split(" ")).pipe(Stream.map((WORD) => ({ WORD }))),
  ),
  Model.each(Odd, () => Effect.succeed({ BYTES: Tensor.make("BYTES", [1], [Uint8Array.of(0xff)]) })),
)

const start = () =>
  Server.start([Every, Alone, Words, Odd], layers, {
    http: 0,
    grpc: false,
    metrics: false,
    maxInputSize: 4096,
    routes: { "POST /every": Every, "POST /a/b.c": Alone, "POST /words": Words, "POST /odd": Odd },
  })

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => {
  server = await start()
})
afterAll(() => server.stop())

const post = async (path: string, body: unknown, init: RequestInit = {}) => {
  const text = typeof body === "string" ? body : JSON.stringify(body)
  const response = await fetch(`http://127.0.0.1:${server.http.port}${path}`, { method: "POST", body: text, ...init })
  const reply = await response.text()
  return {
    status: response.status,
    tag: response.headers.get("nereid-error"),
    type: response.headers.get("content-type"),
    response: reply,
    json: (): unknown => JSON.parse(reply),
  }
}

const every = {
  TEXT: "grüße\u0000",
  LABEL: "dog",
  COUNT: "9007199254740993",
  RATE: 0.1,
  YES: true,
  WHERE: { street: "Quay", number: 7 },
  MATRIX: [
    [1, 0.3, "NaN"],
    [-1, "Infinity", "-Infinity"],
  ],
  BIG: ["18446744073709551615", "0"],
  FLAGS: [true, false],
  WORDS: ["", "two", "drei"],
  HALF: [0.25],
}

describe("a sample", () => {
  it("goes in and comes out as code has it, whatever its fields", async () => {
    const { status, type, json } = await post("/every", every)
    expect([status, type]).toEqual([200, "application/json"])
    expect(json()).toEqual(every)
  })

  it("may have integers of 64 bits as numbers, where those are exact", async () => {
    const { json } = await post("/every", { ...every, COUNT: 5, BIG: [1, 2] })
    expect(json()).toEqual({ ...every, COUNT: "5", BIG: ["1", "2"] })
  })

  it("may omit inputs with a default, and has declared parameters in addition to its inputs", async () => {
    expect((await post("/a/b.c", { X: [1, 2] })).json()).toEqual({ X: [10, 20] })
    expect((await post("/a/b.c", { X: [1, 2], SCALE: 3, OFFSET: 1 })).json()).toEqual({ X: [4, 7] })
  })

  it("is answered response by response where the model streams", async () => {
    const { status, type, response } = await post("/words", { TEXT: "to and fro" })
    expect([status, type]).toEqual([200, "text/event-stream; charset=utf-8"])
    expect(response).toBe('data: {"WORD":"to"}\n\ndata: {"WORD":"and"}\n\ndata: {"WORD":"fro"}\n\n')
  })
})

describe("refuses", () => {
  it.each([
    ["no JSON", "{", 400, "expected a JSON object: Expected property name"],
    ["a duplicate key", '{"X":[1,2],"X":[1,2]}', 400, "Duplicate object member 'X' at 15"],
    ["an array", "[1]", 400, "expected a JSON object: got an array"],
    ["null", "null", 400, "expected a JSON object: got null"],
    ["a name that is not declared", { X: [1, 2], Y: 1 }, 400, "input 'Y' of model 'alone': not declared"],
    ["a missing input", {}, 400, "input 'X' of model 'alone': missing: declared as INT32[2]"],
    ["null for an input", { X: null }, 400, "input 'X' of model 'alone': expected numbers in nested arrays"],
    [
      "a wrong extent",
      { X: [1, 2, 3] },
      400,
      "input 'X' of model 'alone': wrong dims: declared as INT32[2], got INT32[3]",
    ],
    ["a wrong rank", { X: 1 }, 400, "input 'X' of model 'alone': wrong rank: declared as INT32[2], got INT32[]"],
    ["arrays that disagree", { X: [1, [2]] }, 400, "input 'X' of model 'alone': Arrays of the shape [2]"],
    ["a text for a number", { X: ["1", 2] }, 400, "input 'X' of model 'alone': expected numbers in nested arrays"],
    ["a fraction", { X: [0.5, 2] }, 400, "input 'X' of model 'alone': INT32 cannot hold 0.5"],
    [
      "what the datatype cannot hold",
      { X: [2 ** 31, 2] },
      400,
      "input 'X' of model 'alone': INT32 cannot hold 2147483648",
    ],
    [
      "a parameter that is an object",
      { X: [1, 2], OFFSET: {} },
      400,
      "input 'OFFSET' of model 'alone': a parameter is",
    ],
    ["a parameter of another type", { X: [1, 2], OFFSET: "a" }, 400, "OFFSET"],
    ["a scalar of another type", { X: [1, 2], SCALE: "3" }, 400, ": declared as INT32[1]"],
    ["a body that is too large", { X: "x".repeat(5000) }, 400, "4096"],
  ])("%s", async (_, body, status, message) => {
    const response = await post("/a/b.c", body)
    expect(response.status).toBe(status)
    expect(response.json()).toEqual({ error: expect.stringContaining(message) })
    expect(response.tag).not.toBeNull()
  })

  it("arrays within arrays, thousands of them, and trees that deep", async () => {
    const arrays = (field: string) => `{"${field}":${"[".repeat(20_000)}${"]".repeat(20_000)}}`
    const tree = `{"TREE":${'{"inner":['.repeat(20_000)}${"]}".repeat(20_000)}}`
    const live = Layer.merge(
      layers,
      Model.each(Deep, (sample) => Effect.succeed(sample)),
    )
    const routes = { "POST /alone": Alone, "POST /odd": Odd, "POST /deep": Deep } as const
    await using large = await Server.start([Alone, Odd, Deep], live, { http: 0, grpc: false, metrics: false, routes })
    for (const [path, body] of [
      ["/alone", arrays("X")],
      ["/alone", arrays("OFFSET")],
      ["/odd", arrays("X")],
      ["/deep", tree],
    ] as const) {
      const response = await fetch(`http://127.0.0.1:${large.http.port}${path}`, { method: "POST", body })
      expect([response.status, response.headers.get("nereid-error")], path).toEqual([400, "InvalidRequest"])
    }
  })

  it("an unknown label, and text that is not JSON", async () => {
    expect((await post("/every", { ...every, LABEL: "cow" })).json()).toEqual({
      error: expect.stringContaining(`input 'LABEL' of model 'every': Expected "cat" | "dog"`),
    })
    expect((await post("/every", { ...every, WORDS: [1] })).status).toBe(400)
    expect((await post("/every", { ...every, BIG: ["-1"] })).status).toBe(400)
    expect((await post("/every", { ...every, COUNT: 2 ** 60 })).status).toBe(400)
  })

  it("an output without a JSON form is the model's failure", async () => {
    const { status, tag, json } = await post("/odd", { X: 1 })
    expect([status, tag]).toEqual([500, "ExecutionFailed"])
    expect(json()).toEqual({ error: expect.stringContaining("output 'BYTES' of model 'odd'") })
  })

  it("a stream that fails at once has the status of its failure", async () => {
    const { status, tag } = await post("/words", { TEXT: "" })
    expect([status, tag]).toEqual([500, "ExecutionFailed"])
  })

  it("another method, and a path below", async () => {
    const url = `http://127.0.0.1:${server.http.port}`
    const get = await fetch(`${url}/words`)
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST"])
    expect((await post("/words/x", {})).status).toBe(404)
    // A dot is a dot.
    expect((await post("/a/bxc", {})).status).toBe(404)
  })
})

describe("/openapi.json", () => {
  const read = async (): Promise<unknown> => (await fetch(`http://127.0.0.1:${server.http.port}/openapi.json`)).json()
  const at = (document: unknown, ...path: ReadonlyArray<string>): unknown =>
    path.reduce((node, key) => Reflect.get(Object(node), key), document)
  const json = ["content", "application/json", "schema"]

  it("describes the inputs and outputs of each route", async () => {
    const document = await read()
    expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "nereid" } })
    const single = at(document, "paths", "/a/b.c", "post")
    expect(at(single, "requestBody", ...json)).toMatchObject({
      type: "object",
      properties: { X: { type: "array", items: { type: "integer" }, minItems: 2, maxItems: 2 }, SCALE: {}, OFFSET: {} },
      required: ["X"],
    })
    expect(at(single, "responses", "200", ...json, "required")).toEqual(["X"])
    const streamed = at(document, "paths", "/words", "post", "responses", "200", "content")
    expect(Object.keys(Object(streamed))).toEqual(["text/event-stream"])
    const address = at(document, "components", "schemas", "Route1.Address")
    expect(address).toMatchObject({ type: "object", required: ["street", "number"] })
    const properties = at(document, "paths", "/every", "post", "requestBody", ...json, "properties")
    expect(at(properties, "LABEL")).toEqual({ type: "string", enum: ["cat", "dog"] })
    expect(at(properties, "WHERE")).toEqual({ $ref: "#/components/schemas/Route1.Address" })
  })
})

class Brain extends Model.Service<Brain>()("brain", {
  inputs: { X: Tensor.BF16(1) },
  outputs: { X: Tensor.BF16(1) },
}) {}

describe("a server does not start", () => {
  const live = Layer.mergeAll(
    layers,
    Model.each(Brain, (sample) => Effect.succeed(sample)),
  )

  it.each([
    ["POST /v2/mine", Words, `the route "POST /v2/mine" is reserved by the protocol or the server`],
    ["POST /openapi.json", Words, "is reserved by the protocol or the server"],
    ["POST /a b", Words, `must be POST and a path, such as "POST /words"`],
    ["POST /brain", Brain, "'X' cannot be represented as JSON: BF16[1] has no JSON numbers"],
  ] as const)("with the route %s", async (route, model, message) => {
    const options = { http: 0, grpc: false, metrics: false, routes: { [route]: model } } as const
    await expect(Server.start([Words, Brain], live, options)).rejects.toThrow(message)
  })
})

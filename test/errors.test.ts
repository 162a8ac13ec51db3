/**
 * Errors and response parameters that models declare, over sockets: what a handler fails with and says is what callers
 * have, in process, over gRPC and over HTTP, through a chain of servers, and what plain clients of the protocol see of
 * it.
 */
import { Client } from "@nereid/client"
import { Errors, Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Layer, Schema, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

class BadImage extends Schema.TaggedError<BadImage>()("BadImage", {
  reason: Schema.String,
  at: Schema.Date,
  sizes: Schema.Array(Schema.BigInt),
}) {}
class TooDark extends Schema.TaggedError<TooDark>()("TooDark", { message: Schema.String }) {}

const declared = {
  responseParameters: { took: Schema.Number, language: Schema.optionalKey(Schema.Literals(["de", "en"])) },
  errors: [TooDark, [BadImage, { http: 422, grpc: "FAILED_PRECONDITION" }]],
} as const

/** Fails as its input says. */
class Look extends Model.Service<Look>()("look", {
  inputs: { HOW: Tensor.utf8() },
  outputs: { SEEN: Tensor.utf8() },
  maxBatchSize: 2,
  ...declared,
}) {}

class Watch extends Model.Service<Watch>()("watch", {
  inputs: { HOW: Tensor.utf8() },
  outputs: { SEEN: Tensor.utf8() },
  ...declared,
}) {}

/** The same model for a client that knows nothing of what it declares. */
class Plain extends Model.Service<Plain>()("look", {
  inputs: Look.definition.inputs,
  outputs: Look.definition.outputs,
  maxBatchSize: 2,
}) {}

/** The same name, another contract: its field is a number. */
class OtherBadImage extends Schema.TaggedError<OtherBadImage>()("BadImage", { reason: Schema.Number }) {}
class Other extends Model.Service<Other>()("look", {
  inputs: Look.definition.inputs,
  outputs: Look.definition.outputs,
  maxBatchSize: 2,
  errors: [OtherBadImage],
}) {}

/** Calls Look, and declares no errors. */
class Outer extends Model.Service<Outer>()("outer", {
  inputs: { HOW: Tensor.utf8() },
  outputs: { SEEN: Tensor.utf8() },
}) {}

const bad = () => new BadImage({ reason: "größer\nals 100 %", at: new Date(86_400_000), sizes: [2n ** 60n, -1n] })

const failureOf = (mode: string) => {
  switch (mode) {
    case "bad":
      return bad()
    case "dark":
      return new TooDark({ message: "too dark \u{1F311}" })
    case "huge":
      return new TooDark({ message: "x".repeat(10_000) })
    case "busy":
      return new Errors.QueueFull({ message: mode, retryAfter: 3000 })
    default:
      return new Errors.QueueFull({ message: mode })
  }
}

const LookLive = Model.each(Look, ({ HOW }, { setParameter }) =>
  Effect.gen(function* () {
    if (HOW !== "well") return yield* Effect.fail(failureOf(HOW))
    yield* setParameter("took", 1.5)
    yield* setParameter("language", "de")
    return { SEEN: HOW }
  }),
)

/** One response ahead of a failure where the text begins with "later ". */
const WatchLive = Model.stream(Watch, ({ HOW }, { setParameterUnsafe }) => {
  const response = Stream.sync(() => {
    setParameterUnsafe("took", 2)
    return { SEEN: HOW }
  })
  if (HOW === "well") return Stream.concat(response, response)
  const failing = Stream.fail(failureOf(HOW.replace("later ", "")))
  return HOW.startsWith("later ") ? Stream.concat(response, failing) : failing
})

const OuterLive = Model.each(
  Outer,
  Effect.map(
    Look,
    (look) =>
      ({ HOW }) =>
        look.infer({ HOW }),
  ),
)

const anywhere = { host: "127.0.0.1", port: 0 } as const
const ports = { http: anywhere, grpc: anywhere, metrics: false } as const
const models = Layer.mergeAll(LookLive, WatchLive, OuterLive.pipe(Layer.provide(LookLive)))
const start = () => Server.start([Look, Watch, Outer], models, ports)

let server: Awaited<ReturnType<typeof start>>
beforeAll(async () => void (server = await start()))
afterAll(() => server.stop())

const url = (protocol: "grpc" | "http") => `${protocol}://127.0.0.1:${server[protocol].port}`
const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => "no failure",
    (error) => error,
  )

describe.each(["grpc", "http"] as const)("over %s", (protocol) => {
  it("a declared error is an instance of its class, with its fields", async () => {
    await using look = await Client.connect(Look, { url: url(protocol) })
    const error = await rejection(look.infer({ HOW: "bad" }))
    expect(error).toBeInstanceOf(BadImage)
    expect(error).toMatchObject({ reason: "größer\nals 100 %", at: new Date(86_400_000), sizes: [2n ** 60n, -1n] })
    const dark = await rejection(look.infer({ HOW: "dark" }))
    expect(dark).toBeInstanceOf(TooDark)
    expect(dark).toMatchObject({ message: "too dark \u{1F311}" })
    expect(await rejection(look.infer({ HOW: "full" }))).toEqual(new Errors.QueueFull({ message: "full" }))
  })

  it("the client receives the retry delay of an error", async () => {
    await using look = await Client.connect(Look, { url: url(protocol) })
    await using watch = await Client.connect(Watch, { url: url(protocol) })
    const busy = { _tag: "QueueFull", message: "busy", retryAfter: 3000 }
    expect(await rejection(look.infer({ HOW: "busy" }))).toMatchObject(busy)
    expect(await rejection(Array.fromAsync(watch.stream({ HOW: "busy" })))).toMatchObject(busy)
  })

  it("is caught by its tag", async () => {
    const toldLive = Effect.gen(function* () {
      const look = yield* Look
      return yield* Effect.catchTag(look.infer({ HOW: "bad" }), "BadImage", ({ reason }) => Effect.succeed(reason))
    })
    const layer = Client.layer(Look, { url: url(protocol) })
    expect(await Effect.runPromise(Effect.provide(toldLive, layer))).toBe("größer\nals 100 %")
  })

  it("of batches, also those that go in chunks", async () => {
    await using look = await Client.connect(Look, { url: url(protocol) })
    const HOW = Tensor.make(
      "BYTES",
      [3, 1],
      ["well", "well", "bad"].map((mode) => new TextEncoder().encode(mode)),
    )
    expect(await rejection(look.inferBatch({ HOW }))).toBeInstanceOf(BadImage)
  })

  it("of streams, ahead of the first response and behind it", async () => {
    await using watch = await Client.connect(Watch, { url: url(protocol) })
    expect(await rejection(Array.fromAsync(watch.stream({ HOW: "bad" })))).toBeInstanceOf(BadImage)
    const later = await rejection(Array.fromAsync(watch.stream({ HOW: "later bad" })))
    expect(later).toBeInstanceOf(BadImage)
    const full = await rejection(Array.fromAsync(watch.stream({ HOW: "later full" })))
    expect(full).toEqual(new Errors.QueueFull({ message: "full" }))
  })

  it("is a DeclaredFailure if it is too large, declared differently, or undeclared", async () => {
    await using look = await Client.connect(Look, { url: url(protocol) })
    expect(await rejection(look.infer({ HOW: "huge" }))).toMatchObject({
      _tag: "DeclaredFailure",
      kind: "TooDark",
      message: expect.stringMatching(/^TooDark: x{1000}/),
    })
    await using other = await Client.connect(Other, { url: url(protocol) })
    await using plain = await Client.connect(Plain, { url: url(protocol) })
    for (const client of [other, plain]) {
      const error = await rejection(client.infer({ HOW: "bad" }))
      expect(error).toBeInstanceOf(Errors.DeclaredFailure)
      expect(error).toMatchObject({ _tag: "DeclaredFailure", kind: "BadImage" })
    }
  })

  it("keeps its tag, fields and status through a model that knows nothing of it", async () => {
    await using outer = await Client.connect(Outer, { url: url(protocol) })
    expect(await rejection(outer.infer({ HOW: "bad" }))).toMatchObject({
      _tag: "DeclaredFailure",
      kind: "BadImage",
      message: expect.stringContaining("BadImage: {"),
    })
  })

  it("and through a further server, whose model is this one", async () => {
    const remote = Client.layer(Look, { url: url(protocol) })
    const front = await Server.start([Look, Outer], Layer.provideMerge(OuterLive, remote), ports)
    try {
      for (const last of ["grpc", "http"] as const) {
        await using look = await Client.connect(Look, { url: `${last}://127.0.0.1:${front[last].port}` })
        expect(await rejection(look.infer({ HOW: "bad" }))).toBeInstanceOf(BadImage)
        expect(await look.withParameters.infer({ HOW: "well" })).toEqual({
          outputs: { SEEN: "well" },
          parameters: { took: 1.5, language: "de" },
        })
      }
      expect(await post(front.http.port, "look", "bad")).toMatchObject({ status: 422, tag: "BadImage" })
      expect(await post(front.http.port, "outer", "bad")).toMatchObject({ status: 422, tag: "BadImage" })
    } finally {
      await front.stop()
    }
  })

  it("declared parameters of responses have their types", async () => {
    await using look = await Client.connect(Look, { url: url(protocol) })
    const { outputs, parameters } = await look.withParameters.infer({ HOW: "well" })
    const took: number = parameters.took
    const language: "de" | "en" | undefined = parameters.language
    expect([outputs, took, language]).toEqual([{ SEEN: "well" }, 1.5, "de"])
    const HOW = Tensor.make(
      "BYTES",
      [3, 1],
      ["well", "well", "well"].map((mode) => new TextEncoder().encode(mode)),
    )
    const batch = await look.withParameters.inferBatch({ HOW })
    expect([batch.outputs.SEEN.shape, batch.parameters]).toEqual([[3, 1], { took: 1.5, language: "de" }])
  })

  it("and so have those of the responses of a stream", async () => {
    await using watch = await Client.connect(Watch, { url: url(protocol) })
    const one = { outputs: { SEEN: "well" }, parameters: { took: 2 } }
    expect(await Array.fromAsync(watch.withParameters.stream({ HOW: "well" }))).toEqual([one, one])
  })

  it("where none are declared, they are as they came", async () => {
    await using plain = await Client.connect(Plain, { url: url(protocol) })
    const { parameters } = await plain.withParameters.infer({ HOW: "well" })
    expect(parameters).toMatchObject({ took: 1.5, language: "de" })
  })
})

const post = async (port: number, model: string, HOW: string) => {
  const body = JSON.stringify({ inputs: [{ name: "HOW", datatype: "BYTES", shape: [1, 1], data: [HOW] }] })
  const plain = model === "look" ? body : body.replace("[1,1]", "[1]")
  const headers = { connection: "close" }
  const response = await fetch(`http://127.0.0.1:${port}/v2/models/${model}/infer`, {
    method: "POST",
    headers,
    body: plain,
  })
  const { headers: got, status } = response
  return { status, tag: got.get("nereid-error"), detail: got.get("nereid-error-detail"), text: await response.text() }
}

it("a plain client sees the declared status, and the tag in the text", async () => {
  const { status, tag, detail, text } = await post(server.http.port, "look", "bad")
  expect([status, tag]).toEqual([422, "BadImage"])
  expect(JSON.parse(detail ?? "")).toMatchObject({ _tag: "BadImage", reason: "größer\nals 100 %" })
  expect(JSON.parse(text).error).toMatch(/^BadImage: \{"reason":"größer/)
  expect(await post(server.http.port, "look", "dark")).toMatchObject({
    status: 500,
    text: '{"error":"TooDark: too dark \u{1F311}"}',
  })
  expect(await post(server.http.port, "look", "huge")).toMatchObject({ status: 500, detail: "{}" })
})

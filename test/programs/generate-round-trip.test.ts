/**
 * A declaration that is served, generated and compiled again: the contract of a client that never had the declaration.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import { Effect, Schema } from "effect"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { nereid, root } from "../Program.ts"

/** Where the packages resolve. */
let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(root, "test", ".generate-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

class Person extends Schema.Class<Person>("Person")({
  name: Schema.String,
  age: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  since: Schema.Date,
  id: Schema.BigInt,
  score: Schema.Number,
}) {}

interface Tree {
  readonly word: string
  readonly children: ReadonlyArray<Tree>
}
const Tree: Schema.Codec<Tree> = Schema.Struct({
  word: Schema.String,
  children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree)),
}).annotate({ identifier: "Tree" })

class TooDark extends Schema.TaggedError<TooDark>()("TooDark", {}) {}

class BadImage extends Schema.TaggedError<BadImage>()("BadImage", {
  reason: Schema.Literals(["small", "torn"]),
  pixels: Schema.optionalKey(Schema.Int),
}) {}

class Everything extends Model.Service<Everything>()("every thing", {
  inputs: {
    TEXT: Tensor.utf8(),
    RAW: Tensor.BYTES(1),
    ONE: Tensor.FP32(1),
    WORDS: Tensor.INT64("words", 3),
    OTHER: Tensor.INT64("words"),
    LANGUAGE: Tensor.optional(Tensor.utf8(), { default: 'e"n\n' }),
    WEIGHT: Tensor.optional(Tensor.scalar("FP64"), { default: 0.25 }),
    COUNT: Tensor.optional(Tensor.scalar("INT64"), { default: 2n ** 60n }),
    FLAG: Tensor.optional(Tensor.scalar("BOOL"), { default: true }),
    MASK: Tensor.optional(Tensor.FP32("words"), { default: Infinity }),
    GRID: Tensor.optional(Tensor.INT8(2, 2), { default: Tensor.make("INT8", [2, 2], Int8Array.of(1, -2, 3, 4)) }),
    PAIR: Tensor.optional(Tensor.BYTES(2), {
      default: Tensor.make("BYTES", [2], [new TextEncoder().encode("a"), new TextEncoder().encode("`${b}`")]),
    }),
    KIND: Tensor.optional(Tensor.labels(["cat", "dog"]), { default: "dog" }),
    SETTINGS: Tensor.optional(Tensor.json(Schema.Struct({ depth: Schema.Int, mode: Schema.Literals(["a", "b"]) })), {
      default: { depth: 3, mode: "b" },
    }),
    MAYBE: Tensor.optional(Tensor.scalar("INT8")),
  },
  outputs: {
    CLASS: Tensor.labels(["nega'tive", 'posi"tive']),
    PERSON: Tensor.json(Person),
    TREE: Tensor.json(Tree),
    CHOICE: Tensor.json(
      Schema.Union([Schema.TaggedStruct("Left", { left: Schema.Finite }), Schema.Tuple([Schema.String, Schema.Null])]),
    ),
    TABLE: Tensor.json(Schema.Record(Schema.String, Schema.Array(Schema.Boolean))),
    ANY: Tensor.json(Schema.Unknown),
    TEXT: Tensor.utf8(),
  },
  parameters: {
    temperature: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
    max_tokens: Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(256))),
    seed: Schema.BigInt.pipe(Schema.withDecodingDefaultKey(Effect.succeed(7n))),
    mode: Schema.Literals(["wrap", "cut"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("cut" as const))),
    "x-user": Schema.optionalKey(Schema.String),
  },
  responseParameters: { language: Schema.Literals(["de", "en"]), confidence: Schema.optionalKey(Schema.Finite) },
  errors: [TooDark, [BadImage, { http: 422, grpc: "INVALID_ARGUMENT" }]],
  maxBatchSize: 8,
}) {}

const live = Model.each(
  Everything,
  Effect.fnUntraced(function* (sample, { parameters, setParameter }) {
    if (sample.TEXT === "dark") return yield* new TooDark({})
    if (sample.TEXT === "bad") return yield* new BadImage({ reason: "torn", pixels: 3 })
    yield* setParameter("language", "de")
    const { LANGUAGE, WEIGHT, COUNT, FLAG, GRID, PAIR, KIND, SETTINGS, MAYBE = -1 } = sample
    const given = [LANGUAGE, WEIGHT, String(COUNT), FLAG, [...GRID.data], PAIR.data.length, KIND, SETTINGS, MAYBE]
    const { temperature, max_tokens, seed, mode } = parameters
    return {
      CLASS: 'posi"tive' as const,
      PERSON: new Person({ name: "Ada", age: 36, since: new Date(0), id: 2n ** 70n, score: NaN }),
      TREE: { word: "root", children: [{ word: "leaf", children: [] }] },
      CHOICE: { _tag: "Left" as const, left: 1.5 },
      TABLE: { a: [true, false] },
      ANY: given,
      TEXT: JSON.stringify([temperature, max_tokens, String(seed), mode]),
    }
  }),
)

const start = async () => {
  const server = await Server.start([Everything], live, { http: 0, grpc: 0, metrics: false })
  onTestFinished(() => server.stop())
  return { http: `http://127.0.0.1:${server.http?.port}`, grpc: `grpc://127.0.0.1:${server.grpc?.port}` }
}

const generate = async (...args: ReadonlyArray<string>) => {
  const { code, output } = await nereid("generate", ...args).ended
  return { code, output }
}

/** Compiled against the generated module, and then run: its result is compared. */
const use = (module: string) => `import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { Effect } from "effect"
import { BadImage, EveryThing, TooDark } from "./${module}.ts"

export const use = async (url: string) => {
  await using model = await Client.connect(EveryThing, { url, verify: true })
  const ONE = Tensor.make("FP32", [1], Float32Array.of(1))
  const WORDS = Tensor.make("INT64", [2, 3], new BigInt64Array(6))
  const OTHER = Tensor.make("INT64", [2], new BigInt64Array(2))
  const RAW = Tensor.make("BYTES", [1], [Uint8Array.of(255)])
  const sample = { TEXT: "a text", RAW, ONE, WORDS, OTHER }
  const parameters = { temperature: 0.5 }
  const { outputs: output, parameters: used } = await model.withParameters.infer(sample, { parameters })
  const language: "de" | "en" = used.language
  const CLASS: "nega'tive" | 'posi"tive' = output.CLASS
  const age: number = output.PERSON.age
  const children: ReadonlyArray<{ readonly word: string }> = output.TREE.children
  const left = "_tag" in output.CHOICE ? output.CHOICE.left : output.CHOICE[1]
  // @ts-expect-error: one of the labels
  const label: "other" = output.CLASS
  // @ts-expect-error: no such member
  const unknown = output.PERSON.unknown
  // @ts-expect-error: required
  const incomplete = () => model.infer(sample, { parameters: { max_tokens: 1 } })
  // @ts-expect-error: one of two
  const mode = () => model.infer(sample, { parameters: { temperature: 1, mode: "other" } })
  // @ts-expect-error: an integer
  const settings = () => model.infer({ ...sample, SETTINGS: { depth: "1", mode: "a" } }, { parameters })
  const changed = await model.infer({ ...sample, SETTINGS: { depth: 1, mode: "a" }, KIND: "cat", MAYBE: 5 }, { parameters })
  const failures = await Promise.all(
    ["dark", "bad"].map((TEXT) =>
      Effect.runPromise(
        Effect.tryPromise({ try: () => model.infer({ ...sample, TEXT }, { parameters }), catch: (error) => error }).pipe(
          Effect.as("no error"),
          Effect.catch((error) => Effect.succeed(error)),
        ),
      ),
    ),
  )
  const tags = failures.map((error) =>
    error instanceof BadImage ? [error._tag, error.reason, error.pixels] : error instanceof TooDark ? error._tag : error,
  )
  void [label, unknown, incomplete, mode, settings]
  return { output, CLASS, age, children, left, language, changed: changed.ANY, tags }
}

/** Errors in the types of an effect. */
export const caught = (url: string) =>
  Effect.gen(function* () {
    const model = yield* EveryThing
    const tensors = { RAW: Tensor.make("BYTES", [1], [Uint8Array.of(1)]), ONE: Tensor.make("FP32", [1], Float32Array.of(1)) }
    const WORDS = Tensor.make("INT64", [1, 3], new BigInt64Array(3))
    const OTHER = Tensor.make("INT64", [1], new BigInt64Array(1))
    return yield* model.infer({ TEXT: "bad", WORDS, OTHER, ...tensors }, { parameters: { temperature: 1 } }).pipe(
      Effect.as("no error"),
      Effect.catchTag("BadImage", ({ reason }: { readonly reason: "small" | "torn" }) => Effect.succeed(reason)),
    )
  }).pipe(Effect.provide(Client.layer(EveryThing, { url })), Effect.runPromise)
`

it.each(["http", "grpc"] as const)(
  "over %s, a generated contract behaves as the declaration does",
  async (protocol) => {
    const url = (await start())[protocol]
    const file = join(folder, `${protocol}.ts`)
    expect(await generate(url, "-o", file)).toMatchObject({ code: 0 })
    writeFileSync(join(folder, `${protocol}.use.ts`), use(protocol))
    const include = [`${protocol}.use.ts`]
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", include }))
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", folder])
    const { use: run, caught } = await import(join(folder, `${protocol}.use.ts`))
    const { output, left, language, changed, tags } = await run(url)
    expect(output).toMatchObject({
      CLASS: 'posi"tive',
      PERSON: { name: "Ada", age: 36, since: "1970-01-01T00:00:00.000Z", id: 2n ** 70n, score: NaN },
      TREE: { word: "root", children: [{ word: "leaf", children: [] }] },
      TABLE: { a: [true, false] },
      ANY: ['e"n\n', 0.25, String(2n ** 60n), true, [1, -2, 3, 4], 2, "dog", { depth: 3, mode: "b" }, -1],
      TEXT: '[0.5,256,"7","cut"]',
    })
    expect([left, language]).toEqual([1.5, "de"])
    expect(changed.slice(-3)).toEqual(["cat", { depth: 1, mode: "a" }, 5])
    expect(tags).toEqual(["TooDark", ["BadImage", "torn", 3]])
    expect(await caught(url)).toBe("torn")
    expect(await generate(url, "-o", file, "--check")).toMatchObject({ code: 0 })
  },
  60_000,
)

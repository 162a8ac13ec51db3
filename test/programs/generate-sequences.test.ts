/**
 * Contracts of models with sequences, generated from a server and a repository, compiled into a client, and used
 * against that server.
 */
import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Layer } from "effect"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { RepositoryFixture } from "../fixtures/repository.ts"
import * as sequences from "../fixtures/sequences.ts"
import { nereid, root } from "../Program.ts"

/** Where the packages resolve. */
let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(root, "test", ".generate-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const generate = async (...args: ReadonlyArray<string>) => {
  const { code, output } = await nereid("generate", ...args).ended
  return { code, output }
}

class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: { state: { SUM: Tensor.scalar("INT32") }, maxIdle: "90 seconds" },
}) {}

const SumsLive = Model.sequence(Sums, ({ VALUE }, { state: { SUM }, sequence: { isEnd } }) => ({
  outputs: { TOTAL: isEnd ? -(SUM + VALUE) : SUM + VALUE },
  state: { SUM: SUM + VALUE },
}))

class Words extends Model.Service<Words>()("words", {
  inputs: { TEXT: Tensor.utf8() },
  outputs: { WORD: Tensor.utf8() },
  sequence: { state: { REST: Tensor.utf8() }, maxIdle: Infinity },
}) {}

const WordsLive = Model.sequenceStream(Words, function* ({ TEXT }, { state: { REST } }) {
  const words = `${REST}${TEXT}`.split(" ")
  const rest = words.pop() ?? ""
  for (const WORD of words) yield { outputs: { WORD } }
  yield { state: { REST: rest } }
})

const tensors = `
  input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
  output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }`

const ensemble = `platform: "ensemble" max_batch_size: 4 ${tensors} ensemble_scheduling { step {
  model_name: "stored" model_version: -1
  input_map { key: "INPUT" value: "INPUT" } output_map { key: "OUTPUT" value: "OUTPUT" } } }`

/** A model with sequences, an ensemble of it, and one of that ensemble. */
const stored = (name: string) => {
  const models = new RepositoryFixture(join(folder, name))
  models.write("stored/config.pbtxt", sequences.config(sequences.state(), { idle: 20_000_000 }))
  models.write("stored/1/model.onnx", sequences.accumulator(true))
  models.write("inner/config.pbtxt", ensemble)
  models.write("inner/1/.keep", "")
  models.write("outer/config.pbtxt", ensemble.replace('"stored"', '"inner"'))
  models.write("outer/1/.keep", "")
  return models
}

const start = async (models: RepositoryFixture) => {
  const layer = Layer.mergeAll(SumsLive, WordsLive, Repository.layer({ directories: [models.path] }))
  // Some sessions are open when it stops.
  const options = { http: 0, grpc: 0, metrics: false, drainTimeout: "10 millis" } as const
  const server = await Server.start([Sums, Words], layer, options)
  onTestFinished(() => server.stop())
  return { http: `http://127.0.0.1:${server.http?.port}`, grpc: `grpc://127.0.0.1:${server.grpc?.port}` }
}

/** Compiled against the generated module, and then run. */
const use = (module: string) => `import { Client } from "@nereid/client"
import { Effect, Layer } from "effect"
import { Inner, Outer, Stored, Sums, Words } from "./${module}.ts"

const all = <A>(values: AsyncIterable<A>): Promise<Array<A>> => Array.fromAsync(values)

export const use = async (url: string) => {
  await using sums = await Client.connect(Sums, { url, verify: true })
  await using session = sums.session()
  // @ts-expect-error: a request belongs to a session
  const alone = () => sums.infer({ VALUE: 1 })
  // @ts-expect-error: also that of several rows
  const batch = () => sums.inferBatch({})
  // @ts-expect-error: the sample is checked
  const wrong = () => session.infer({ VALUE: "one" })
  void [alone, batch, wrong]
  const totals = [await session.infer({ VALUE: 1 }), await session.infer({ VALUE: 2 }), await session.end({ VALUE: 3 })]
  const numbers: ReadonlyArray<number> = totals.map(({ TOTAL }) => TOTAL)

  await using words = await Client.connect(Words, { url, verify: true })
  await using texts = words.session()
  // @ts-expect-error: a stream belongs to a session, too
  const stream = () => words.stream({ TEXT: "" })
  void stream
  const read = [...(await all(texts.stream({ TEXT: "one tw" }))), ...(await all(texts.stream({ TEXT: "o " })))]
  const spoken: ReadonlyArray<string> = read.map(({ WORD }) => WORD)

  await using plain = await Client.connect(Stored, { url, verify: true })
  await using inner = await Client.connect(Inner, { url, verify: true })
  await using outer = await Client.connect(Outer, { url, verify: true })
  const stored: Array<number> = []
  for (const { infer, close } of [plain.session(), inner.session(), outer.session()]) {
    for (const INPUT of [10, 20]) stored.push((await infer({ INPUT })).OUTPUT)
    await close()
  }
  return { numbers, spoken, stored }
}

const inEffect = Effect.gen(function* () {
  const sums = yield* Sums
  const session = yield* sums.session({ id: "by effects" })
  yield* session.infer({ VALUE: 5 })
  return yield* session.end({ VALUE: 6 })
}).pipe(Effect.scoped)

// @ts-expect-error: the service has no requests without a session
export const independent = Effect.flatMap(Sums, (sums) => sums.infer({ VALUE: 1 }))

export const byEffects = (url: string) =>
  Effect.runPromise(Effect.provide(inEffect, Layer.orDie(Client.layer(Sums, { url, verify: true }))))
`

const classOf = (contract: string, name: string) =>
  contract
    .slice(contract.lastIndexOf("/**", contract.indexOf(`export class ${name} `)))
    .split("\n\n")[0]
    ?.trim()

it.each(["http", "grpc"] as const)(
  "over %s, a generated contract opens sessions, and nothing else compiles",
  async (protocol) => {
    const { http, [protocol]: url } = await start(stored(`${protocol}-models`))
    const file = join(folder, `${protocol}.ts`)
    expect(await generate(url, "-o", file)).toMatchObject({ code: 0 })
    const contract = readFileSync(file, "utf8")
    expect(classOf(contract, "Sums")).toBe(`/**
 * Generated by \`nereid generate\` from ${url}.
 * Requests belong to a sequence: open a \`session()\`, which expires after 90 seconds without requests.
 */
export class Sums extends Model.Service<Sums>()("sums", {
  inputs: { VALUE: Tensor.scalar("INT32") },
  outputs: { TOTAL: Tensor.scalar("INT32") },
  maxBatchSize: 8,
  sequence: {},
}) {}`)
    expect(classOf(contract, "Words")).toContain(" * Requests belong to a sequence: open a `session()`.\n")
    expect(classOf(contract, "Outer")).toContain("which expires after 20 seconds without requests")

    writeFileSync(join(folder, `${protocol}.use.ts`), use(protocol))
    const include = [`${protocol}.use.ts`]
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ extends: "../../tsconfig.json", include }))
    execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", folder])
    const { use: run, byEffects } = await import(join(folder, `${protocol}.use.ts`))
    expect(await run(url)).toEqual({
      numbers: [1, 3, -6],
      spoken: ["one", "two"],
      stored: [10, 30, 10, 30, 10, 30],
    })
    expect(await byEffects(url)).toEqual({ TOTAL: -11 })
    // Sessions of ensembles have ended the sequence of the step.
    const listed = await fetch(`${http}/v2/models/stored/sequences`)
    expect(await listed.json()).toMatchObject({ live: 0 })
    expect(await generate(url, "-o", file, "--check")).toMatchObject({ code: 0 })
  },
  60_000,
)

it("a repository has the sequences of its models, and of the steps of its ensembles", async () => {
  const models = stored("repository")
  const file = join(folder, "repository.ts")
  expect(await generate(models.path, "-o", file)).toMatchObject({ code: 0 })
  const contract = readFileSync(file, "utf8")
  for (const name of ["Stored", "Inner", "Outer"]) {
    expect(classOf(contract, name)).toMatch(/expires after 20 seconds without requests[^]*sequence: {},\n}\) {}$/)
  }

  // The ensembles change with their step.
  models.write("stored/config.pbtxt", `max_batch_size: 4 ${tensors}`)
  const changed = await generate(models.path, "-o", file, "--check")
  expect(changed.code).toBe(1)
  for (const name of ["stored", "inner", "outer"]) {
    expect(changed.output).toContain(`model '${name}': declared sequences, found independent requests`)
  }
}, 60_000)

it("a contract with other sequences than the server is not verified", async () => {
  const { http, grpc } = await start(stored("verified"))
  class Independent extends Model.Service<Independent>()("sums", {
    inputs: { VALUE: Tensor.scalar("INT32") },
    outputs: { TOTAL: Tensor.scalar("INT32") },
    maxBatchSize: 8,
  }) {}
  for (const url of [http, grpc]) {
    const refused = Client.connect(Independent, { url, verify: true })
    await expect(refused).rejects.toMatchObject({
      _tag: "ContractMismatch",
      message: expect.stringContaining("model 'sums': declared independent requests, found sequences"),
      differences: [{ of: "model", name: "sums", kind: "sequence" }],
    })
  }
})

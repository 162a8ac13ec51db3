/** `nereid export` as a user meets it: a module's models become a repository, which is served as the module was. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { toJson } from "@bufbuild/protobuf"
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { GRPCInferenceService } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest"
import { clients } from "../../packages/server/src/grpc/GrpcServer.fixture.ts"
import { Twice } from "../fixtures/modules/bound.ts"
import { Count, Heavy, Plain, Relay, Tone } from "../fixtures/modules/exported.ts"
import { nereid, type Program, root } from "../Program.ts"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(root, "test", ".export-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const module = "test/fixtures/modules/exported.ts"
const ports = ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]
const chosen = ["plain", "tone", "single", "relay"].flatMap((name) => ["--model", name])

it("a repository is served as the module was, and a client verifies it", async () => {
  const models = join(folder, "models")
  const exported = await nereid("export", module, models, ...chosen).ended
  expect(exported).toMatchObject({ code: 0, output: expect.stringContaining(`Wrote ${models}/plain/1/model.onnx\n`) })
  expect(exported.output).not.toContain("Note:")
  expect(readFileSync(join(models, "tone/1/model.ts"), "utf8")).toContain(
    `export { Tone, ToneLive } from "../../../../fixtures/modules/exported.ts"`,
  )
  expect(existsSync(join(models, "plus"))).toBe(false)
  // Each is to callers what it was.
  const check = await nereid("generate", models, ...chosen, "-o", module, "--check").ended
  expect(check).toMatchObject({ code: 0 })
  await using server = nereid("serve", `--model-repository=${models}`, ...ports)
  const [, http] = await server.match(/HTTPService at .*:(\d+)/)
  expect(server.output).not.toContain("has no effect")
  const url = `http://127.0.0.1:${http}`
  await using tone = await Client.connect(Tone, { url, verify: true })
  expect((await tone.infer({ TEXT: "abc" })).TONE).toBe("high")
  expect((await tone.infer({ TEXT: "abc", LEVEL: 5 })).TONE).toBe("low")
  await using plain = await Client.connect(Plain, { url, verify: true })
  const X = Tensor.make("FP32", [1], Float32Array.of(1))
  expect([...(await plain.infer({ X })).Y.data]).toEqual([8])
  // By its name, among the models of the server.
  await using relay = await Client.connect(Relay, { url, verify: true })
  expect(await relay.infer({ X: 2 })).toEqual({ Y: 9 })
}, 60_000)

const { modelConfig, modelMetadata } = GRPCInferenceService.method

/** A server's models, as clients see them over each transport. */
const seen = async (server: Program, names: ReadonlyArray<string>) => {
  const [, http] = await server.match(/HTTPService at .*:(\d+)/)
  const [, grpc] = await server.match(/GRPCInferenceService at .*:(\d+)/)
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const call = await Effect.runPromise(Scope.provide(clients["grpc-js"]({ port: Number(grpc) }), scope))
  const get = async (path: string) =>
    JSON.parse(await (await fetch(`http://127.0.0.1:${http}/v2/models/${path}`)).text())
  const overHttp = names.map(async (name) => [declared(await get(name)), shared(await get(`${name}/config`))])
  const overGrpc = names.map(async (name) => {
    const configured = await Effect.runPromise(call(modelConfig, { name }))
    const config = "response" in configured ? configured.response.config : undefined
    const described = await Effect.runPromise(call(modelMetadata, { name }))
    const metadata = "response" in described ? declared(described.response) : described
    return [metadata, config && shared(JSON.parse(JSON.stringify(toJson(ModelConfigSchema, config))))]
  })
  return {
    overHttp: [await Promise.all(overHttp), await responsesOf(`http://127.0.0.1:${http}`)],
    overGrpc: [await Promise.all(overGrpc), await responsesOf(`grpc://127.0.0.1:${grpc}`)],
  }
}

/** The file of a model does not have the forms of values that code declares. */
const declared = <M extends { readonly platform: string }>(metadata: M): object =>
  metadata.platform === "onnxruntime_onnx" ? { ...metadata, contract: undefined, contractJson: "" } : metadata

interface Config {
  readonly output: ReadonlyArray<object>
}

/** Without what tells a directory from code, and nothing of the model. */
const shared = ({ output, ...config }: Config) => ({
  ...config,
  platform: "",
  default_model_filename: "",
  defaultModelFilename: "",
  output: output.map((tensor) => ({ ...tensor, label_filename: "", labelFilename: "" })),
})

const responsesOf = async (url: string) => {
  const X = Tensor.make("FP32", [1], Float32Array.of(1))
  await using plain = await Client.connect(Plain, { url, verify: true })
  await using heavy = await Client.connect(Heavy, { url, verify: true })
  await using tone = await Client.connect(Tone, { url, verify: true })
  await using count = await Client.connect(Count, { url, verify: true })
  return [
    await plain.infer({ X }),
    await heavy.infer({ X }),
    await tone.infer({ TEXT: "abc" }),
    await Array.fromAsync(count.stream({ TO: 3 })),
  ]
}

it("metadata, configuration and answers are over both transports what they were; weights come along", async () => {
  const models = join(folder, "same")
  const names = ["plain", "heavy", "tone", "single", "count"]
  const exported = await nereid("export", module, models, ...names.flatMap((name) => ["--model", name])).ended
  expect(exported).toMatchObject({
    code: 0,
    output: expect.stringContaining(`Wrote ${models}/heavy/1/weights/amount.bin\n`),
  })
  await using code = nereid("serve", module, ...ports)
  await using served = nereid("serve", `--model-repository=${models}`, ...ports)
  const [before, after] = [await seen(code, names), await seen(served, names)]
  expect(after).toEqual(before)
  expect(before.overHttp[1]).toMatchObject([
    { Y: { data: Float32Array.of(8) } },
    { Y: { data: Float32Array.of(10) } },
    { TONE: "high" },
    [{ NUMBER: 1 }, { NUMBER: 2 }, { NUMBER: 3 }],
  ])
}, 60_000)

it("logs a configuration with other queues or instances than the layer, unless it omits them", async () => {
  const models = join(folder, "edited")
  await nereid("export", module, models, "-m", "tone", "-m", "single").ended
  const edit = (name: string, change: (config: string) => string) => {
    const file = join(models, name, "config.pbtxt")
    writeFileSync(file, change(readFileSync(file, "utf8")))
  }
  edit("tone", (config) =>
    config.replaceAll(/^(?:dynamic_batching|instance_group|response_cache): \{\n[^]*?^\}\n/gm, ""),
  )
  edit("single", (config) => config.replace(/count: \d+/, "count: 7"))
  await using server = nereid(
    "serve",
    `--model-repository=${models}`,
    "--http-port=0",
    "--grpc-port=0",
    "--metrics-port=0",
  )
  await server.match(/HTTPService at/)
  expect(server.output.match(/Model '.*': .* of the configuration has no effect/g)).toEqual([
    "Model 'single': instance_group of the configuration has no effect",
  ])
}, 60_000)

it("notes omissions, and overwrites nothing", async () => {
  const models = join(folder, "others")
  const first = await nereid("export", module, models, "-m", "plus").ended
  expect(first.output).toContain("Note: model 'plus': a configuration cannot express padTo")
  const config = join(models, "plus/config.pbtxt")
  writeFileSync(config, "max_batch_size: 2")
  const second = await nereid("export", module, models, "-m", "plus").ended
  expect(second).toMatchObject({
    code: 1,
    output: `Error: ${models} contains files with these names and different contents (--overwrite replaces them): plus/config.pbtxt\n`,
  })
  const third = await nereid("export", module, models, "-m", "plus", "--overwrite").ended
  expect(third.output).toContain(`Wrote ${config}\nUnchanged: ${models}/plus/warmup/sample0_0\n`)
}, 60_000)

it("reports a model that cannot be exported", async () => {
  const unknown = await nereid("export", module, join(folder, "none"), "-m", "nothing").ended
  expect(unknown).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^Error: .* exports no model 'nothing', only 'count', 'heavy', 'plain'/),
  })
  const scalar = await nereid("export", module, join(folder, "none"), "-m", "scalar").ended
  expect(scalar.output).toMatch(/^Error: model 'scalar': 'X' is a scalar, but a configuration requires/)
  expect(existsSync(join(folder, "none"))).toBe(false)
}, 60_000)

it("a bound model, which has its layer with it, is served and exported by its name alone", async () => {
  const module = "test/fixtures/modules/bound.ts"
  const models = join(folder, "bound")
  expect(await nereid("export", module, models).ended).toMatchObject({ code: 0 })
  expect(readFileSync(join(models, "twice/1/model.ts"), "utf8")).toContain("export { Twice } from ")
  for (const source of [module, `--model-repository=${models}`]) {
    await using server = nereid("serve", source, "--http-port=0", "--allow-grpc=false", "--allow-metrics=false")
    const [, http] = await server.match(/HTTPService at .*:(\d+)/)
    await using twice = await Client.connect(Twice, { url: `http://127.0.0.1:${http}`, verify: true })
    expect([...(await twice.infer({ X: Tensor.make("FP32", [1], Float32Array.of(4)) })).Y.data]).toEqual([8])
  }
}, 60_000)

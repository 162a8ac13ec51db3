/** `nereid export` as a user meets it: a module's models become a repository, which is served as the module was. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Client } from "@nereid/client"
import { Tensor } from "@nereid/core"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Twice } from "./fixtures/modules/bound.ts"
import { Plain, Relay, Tone } from "./fixtures/modules/exported.ts"
import { nereid, root } from "./Program.ts"

let folder = ""
beforeAll(() => {
  folder = mkdtempSync(join(root, "test", ".export-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const module = "test/fixtures/modules/exported.ts"
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
  await using server = nereid(
    "serve",
    `--model-repository=${models}`,
    "--http-port=0",
    "--grpc-port=0",
    "--metrics-port=0",
  )
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

it("says what is lost, and writes over nothing", async () => {
  const models = join(folder, "others")
  const first = await nereid("export", module, models, "-m", "plus").ended
  expect(first.output).toContain("Note: model 'plus': a configuration has no words for padTo")
  const config = join(models, "plus/config.pbtxt")
  writeFileSync(config, "max_batch_size: 2")
  const second = await nereid("export", module, models, "-m", "plus").ended
  expect(second).toMatchObject({
    code: 1,
    output: `Error: ${models} has other files of these names, which --overwrite would replace: plus/config.pbtxt\n`,
  })
  const third = await nereid("export", module, models, "-m", "plus", "--overwrite").ended
  expect(third.output).toContain(`Wrote ${config}\nLeft as it is: ${models}/plus/warmup/sample0_0\n`)
}, 60_000)

it("says what cannot be exported", async () => {
  const unknown = await nereid("export", module, join(folder, "none"), "-m", "nothing").ended
  expect(unknown).toMatchObject({
    code: 1,
    output: expect.stringMatching(/^Error: .* exports no model 'nothing', only 'count', 'plain'/),
  })
  const scalar = await nereid("export", module, join(folder, "none"), "-m", "scalar").ended
  expect(scalar.output).toMatch(/^Error: model 'scalar': 'X' has no dims/)
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

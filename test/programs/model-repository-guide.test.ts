/** The guide on model repositories: its program, with models in the directory that it expects. */
import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { RepositoryFixture } from "../fixtures/repository.ts"
import { Guide } from "../Guide.ts"
import { root } from "../Program.ts"

const guidePath = "docs/guides/model-repository.md"
const guide = new Guide(guidePath)
afterAll(() => guide[Symbol.dispose]())

it("serves what is in the directory", async () => {
  const models = new RepositoryFixture(guide.file("models"))
  models.adding("resnet", 2, 1)
  const [, config = ""] = /^```\n(max_batch_size: 8\n[^]*?)^```/m.exec(readFileSync(guidePath, "utf8")) ?? []
  models.write("shout/config.pbtxt", config)
  models.write("twice/config.pbtxt", config)
  models.write("counted/config.pbtxt", config)
  models.write(
    "count/config.pbtxt",
    `model_transaction_policy { decoupled: true }
    input { name: "UP_TO" data_type: TYPE_INT32 dims: 1 } output { name: "NUMBER" data_type: TYPE_INT32 dims: 1 }`,
  )
  models.write(
    "sums/config.pbtxt",
    `max_batch_size: 4 sequence_batching { oldest {} }
    input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "SUM" data_type: TYPE_FP32 dims: 1 }`,
  )
  const [, ensemble = ""] = /^```\n(platform: "ensemble"\n[^]*?)^```/m.exec(readFileSync(guidePath, "utf8")) ?? []
  models.adding("one", 1, 1)
  models.adding("two", 1, 2)
  models.write("three/config.pbtxt", ensemble)
  models.write("three/1/.gitkeep", "")
  const { server } = await import(guide.file("server.ts"))
  const index = await fetch(`http://localhost:${server.http.port}/v2/repository/index`, { method: "POST" })
  expect(await index.json()).toEqual([
    { name: "count", version: "1", state: "READY", reason: "" },
    { name: "counted", version: "1", state: "READY", reason: "" },
    { name: "one", version: "1", state: "READY", reason: "" },
    { name: "resnet", version: "2", state: "READY", reason: "" },
    { name: "shout", version: "1", state: "READY", reason: "" },
    { name: "sums", version: "1", state: "READY", reason: "" },
    { name: "three", version: "1", state: "READY", reason: "" },
    { name: "twice", version: "1", state: "READY", reason: "" },
    { name: "two", version: "1", state: "READY", reason: "" },
  ])
  const body = JSON.stringify({ inputs: [{ name: "TEXT", datatype: "BYTES", shape: [1, 1], data: ["hello"] }] })
  const shout = async (name: string) => {
    const response = await fetch(`http://localhost:${server.http.port}/v2/models/${name}/infer`, {
      method: "POST",
      body,
    })
    return response.json()
  }
  expect(await shout("shout")).toMatchObject({ outputs: [{ data: ["HELLO!"] }] })
  expect(await shout("counted")).toMatchObject({ outputs: [{ data: ["hello"] }] })
  expect(await shout("twice")).toMatchObject({ outputs: [{ data: ["HELLO!!"] }] })
  const counting = `http://localhost:${server.http.port}/v2/models/count/generate_stream`
  const numbers = await fetch(counting, { method: "POST", body: '{ "UP_TO": 3 }' })
  expect((await numbers.text()).match(/"NUMBER":\d+/g)).toEqual(['"NUMBER":1', '"NUMBER":2', '"NUMBER":3'])
  const add = async (value: number, flags: object) => {
    const response = await fetch(`http://localhost:${server.http.port}/v2/models/sums/infer`, {
      method: "POST",
      body: JSON.stringify({
        parameters: { sequence_id: 7, ...flags },
        inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [value] }],
      }),
    })
    return response.json()
  }
  expect(await add(1, { sequence_start: true })).toMatchObject({ outputs: [{ data: [1] }] })
  expect(await add(2, { sequence_end: true })).toMatchObject({ outputs: [{ data: [3] }] })
  const zero = JSON.stringify({ inputs: [{ name: "X", datatype: "FP32", shape: [1, 1], data: [0] }] })
  const pending = await fetch(`http://localhost:${server.http.port}/v2/models/three/infer`, {
    method: "POST",
    body: zero,
  })
  expect(await pending.json()).toMatchObject({ model_name: "three", outputs: [{ name: "Y", data: [3] }] })
  await server.stop()
})

it("its scripts and its program compile", () => {
  const configuration = guide.file("tsconfig.json")
  writeFileSync(configuration, JSON.stringify({ extends: join(root, "tsconfig.json"), include: ["**/*.ts"] }))
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", configuration], { stdio: "inherit" })
}, 60_000)

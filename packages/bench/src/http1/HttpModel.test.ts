/** Servers of other vendors: fields that they omit or add. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it, onTestFinished } from "vitest"
import type { Address } from "../target/Address.ts"
import * as ModelTraits from "../target/ModelTraits.ts"
import * as HttpModel from "./HttpModel.ts"

const serve = async (replies: Readonly<Record<string, unknown>>): Promise<Address> => {
  const server = createServer((request, response) => {
    const reply = replies[`${request.method} ${request.url}`]
    request.resume().on("end", () => {
      if (reply === undefined) response.writeHead(404).end('{"detail":"Not Found"}')
      else response.end(JSON.stringify(reply))
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => void server.close())
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port }
}

const model = (address: Address, path = "", version = "") =>
  HttpModel.make(address, { model: { name: "my net", version }, json: true, path, headers: { "x-key": "1" } })

const tensor = { name: "in", datatype: "FP32", shape: [-1, 4], parameters: { content_type: "np" } }

it("a server without configuration and statistics", async () => {
  const metadata = { name: "my net", versions: [], platform: "", inputs: [tensor], outputs: [], parameters: {} }
  const client = model(await serve({ "GET /v2/models/my%20net": metadata }))
  const config = await client.config()
  expect(config).toBeUndefined()
  expect(await client.statistics()).toBeUndefined()
  const traits = ModelTraits.make(await client.metadata(), config)
  // A first axis of any extent in all inputs is taken for the batch.
  expect(traits).toMatchObject({ maxBatchSize: Infinity, decoupled: false, inputs: [{ name: "in", shape: [-1, 4] }] })
})

it("a server with both, behind a path, asked for a version", async () => {
  const base = "GET /team/v2/models/my%20net/versions/3"
  const address = await serve({
    [base]: { name: "my net", platform: "tensorrt_plan", inputs: [tensor, { ...tensor, name: "mask" }], outputs: [] },
    [`${base}/config`]: {
      name: "my net",
      max_batch_size: 16,
      input: [{ name: "mask", data_type: "TYPE_FP32", dims: [4], optional: true, from_the_future: 1 }],
      model_transaction_policy: { decoupled: true },
    },
    [`${base}/stats`]: { model_stats: [{ name: "my net", version: "3", inference_count: 5, inference_stats: {} }] },
  })
  const client = model(address, "/team", "3")
  const traits = ModelTraits.make(await client.metadata(), await client.config())
  expect(traits).toMatchObject({ maxBatchSize: 16, decoupled: true, platform: "tensorrt_plan" })
  expect(traits.inputs.map(({ optional }) => optional)).toEqual([false, true])
  expect(await client.statistics()).toMatchObject({ modelStats: [{ name: "my net", inferenceCount: 5n }] })
})

it("reports an unknown model and an unknown datatype", async () => {
  await expect(model(await serve({})).metadata()).rejects.toThrow(/^GET \/v2\/models\/my%20net: HTTP status 404: /)
  const client = model(
    await serve({ "GET /v2/models/my%20net": { name: "my net", inputs: [{ ...tensor, datatype: "FP8" }] } }),
  )
  const metadata = await client.metadata()
  expect(() => ModelTraits.make(metadata, undefined)).toThrow("'in' of the model has the unknown datatype FP8")
})

it("reports a datatype that JSON cannot represent", async () => {
  const inputs = [{ name: "in", datatype: "FP16", shape: [1], bytes: new Uint8Array(2) }]
  const request = { modelName: "m", modelVersion: "", id: "", parameters: {}, inputs, outputs: [] }
  await expect(model(await serve({})).infer(request)).rejects.toThrow(
    "the inputs in (FP16) cannot be sent as JSON: use binary tensors",
  )
})

import type { WireRequest, WireTensor } from "@nereid/core/internal/wire/WireRequest"
import { expect, it } from "vitest"
import type { ModelClient } from "../target/ModelClient.ts"
import type { ModelTraits } from "../target/ModelTraits.ts"
import * as TrialRequests from "./TrialRequests.ts"

const model: ModelTraits = {
  name: "m",
  platform: "",
  inputs: [],
  outputs: [{ name: "OUT", datatype: "FP32", shape: [-1, 2], optional: false }],
  maxBatchSize: 0,
  decoupled: false,
}

const good: WireTensor = { name: "OUT", datatype: "FP32", shape: [3, 2], bytes: new Uint8Array(24) }

const request = (modelName: string): WireRequest => ({
  modelName,
  modelVersion: "",
  id: "",
  parameters: {},
  inputs: [],
  outputs: [],
})

interface Reply {
  readonly outputs?: ReadonlyArray<WireTensor>
  readonly lengths?: ReadonlyArray<number>
  readonly responses?: number
  readonly id?: string
}

const tryRequests = (
  { outputs = [good], lengths = [24], responses = 1, id = "" }: Reply,
  hasLengths = true,
  traits = model,
) => {
  let requestCount = 0
  const response = { modelName: "m", modelVersion: "1", id, parameters: {}, outputs }
  const client: Pick<ModelClient, "infer"> = {
    infer: async () => ({
      responses: Array.from({ length: responses }, () => response),
      length: lengths[requestCount++ % lengths.length] ?? 0,
    }),
  }
  return TrialRequests.run(client, traits, [request("a"), request("b")], hasLengths)
}

it("each request's reply has its length", async () => {
  const { requests, remarks, responses } = await tryRequests({ lengths: [24, 24, 30, 30] })
  expect(requests.map(({ replyLength }) => replyLength)).toEqual([24, 30])
  expect(remarks).toEqual([])
  expect(responses).toHaveLength(1)
})

it("does not check lengths that differ between equal requests, and reports it", async () => {
  const { requests, remarks } = await tryRequests({ lengths: [24, 25] })
  expect(requests.map(({ replyLength }) => replyLength)).toEqual([undefined, undefined])
  expect(remarks).toEqual(["responses to the same request have 24 and 25 bytes, so lengths are not checked"])
})

it("does not repeat requests whose lengths are not checked", async () => {
  expect((await tryRequests({}, false)).requests.map(({ replyLength }) => replyLength)).toEqual([undefined, undefined])
})

it.each([
  ["", false],
  ["1", true],
])("whether replies have ids: %j", async (id, hasIds) => {
  expect((await tryRequests({ id })).traits).toEqual({ decoupled: false, hasIds })
})

it("a decoupled model may answer any number of times", async () => {
  const { traits, requests } = await tryRequests({ responses: 3 }, true, { ...model, decoupled: true })
  expect(traits.decoupled).toBe(true)
  expect(requests[0].replyLength).toBeUndefined()
})

it.each<readonly [string, Reply, string]>([
  [
    "bytes that do not fill the shape",
    { outputs: [{ ...good, bytes: new Uint8Array(20) }] },
    "the output 'OUT' of the response: expected 24 bytes for FP32[3,2], got 20",
  ],
  ["an unknown datatype", { outputs: [{ ...good, datatype: "FP8" }] }, "has the unknown datatype FP8"],
  ["several responses", { responses: 2 }, "2 responses to a request, expected one"],
])("refuses a response with %s", async (_, reply, message) => {
  await expect(tryRequests(reply)).rejects.toThrow(message)
})

it("reports differences from the model metadata", async () => {
  const outputs = [
    { ...good, shape: [6], bytes: good.bytes },
    { ...good, name: "MORE" },
  ]
  expect((await tryRequests({ outputs })).remarks).toEqual([
    "the output 'OUT' of the response is FP32[6], but FP32[-1,2] in the model metadata",
    "the output 'MORE' of the response is not in the model metadata",
  ])
})

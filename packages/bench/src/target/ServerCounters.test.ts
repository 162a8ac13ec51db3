import { create } from "@bufbuild/protobuf"
import { ModelStatisticsResponseSchema } from "@nereid/protocol/grpc_service"
import { expect, it } from "vitest"
import * as ServerCounters from "./ServerCounters.ts"

const counters = (requests: number, milliseconds: number, executions: number) => {
  const duration = { count: BigInt(requests), ns: BigInt(milliseconds * 1e6) }
  const stats = {
    name: "m",
    inferenceCount: BigInt(requests * 2),
    executionCount: BigInt(executions),
    inferenceStats: { success: duration, queue: duration, computeInput: duration, computeInfer: duration },
  }
  // Two versions, and another model.
  const modelStats = [stats, { ...stats, version: "2" }, { ...stats, name: "x" }]
  return ServerCounters.read(create(ModelStatisticsResponseSchema, { modelStats }), "m")
}

it("returns the difference of the counters per request", () => {
  expect(ServerCounters.between(counters(10, 100, 5), counters(30, 200, 15))).toEqual({
    requests: 40,
    queue: 5,
    compute: 10,
    meanBatch: 4,
    cacheHits: 0,
  })
})

it.each([
  ["the server does not tell", undefined, counters(1, 1, 1)],
  ["the server has been started again", counters(10, 1, 9), counters(1, 1, 1)],
  ["it has counted nothing", counters(1, 1, 1), counters(1, 1, 1)],
])("nothing where %s", (_, before, after) => {
  expect(ServerCounters.between(before, after)).toBeUndefined()
})

it("nothing of another model", () => {
  expect(
    ServerCounters.read(create(ModelStatisticsResponseSchema, { modelStats: [{ name: "x" }] }), "m"),
  ).toBeUndefined()
})

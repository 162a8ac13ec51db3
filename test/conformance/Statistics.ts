/** The statistics of a model as its clients see them: over both protocols, which have to say the same. */
import { create, equals, fromBinary, fromJson, toBinary } from "@bufbuild/protobuf"
import { assert } from "@effect/vitest"
import {
  type ModelStatistics,
  ModelStatisticsRequestSchema,
  ModelStatisticsResponseSchema,
} from "@nereid/protocol/grpc_service"
import type { Connections } from "./Connections.ts"
import { messages } from "./GrpcConnection.ts"
import { frame } from "./GrpcEncoding.ts"

type Connected = Connections["Service"]

/** Of its only version. */
export const statistics = async (
  connections: Connected,
  model: string,
  server: keyof Connected["servers"],
): Promise<ModelStatistics> => {
  const { body: json } = await (await connections.http(server)).request({ path: `/v2/models/${model}/stats` })
  const request = create(ModelStatisticsRequestSchema, { name: model })
  const chunks = [frame(toBinary(ModelStatisticsRequestSchema, request))]
  const { body } = await (await connections.grpc(server)).call({ method: "ModelStatistics", chunks })
  const [message = new Uint8Array()] = messages(body)
  const response = fromBinary(ModelStatisticsResponseSchema, message)
  assert.isTrue(
    equals(
      ModelStatisticsResponseSchema,
      response,
      fromJson(ModelStatisticsResponseSchema, JSON.parse(json.toString())),
    ),
    json.toString(),
  )
  const [found, ...others] = response.modelStats
  if (found === undefined || others.length > 0) throw new Error(`${response.modelStats.length} statistics of ${model}`)
  return found
}

/** Execution counts of a model: rows, batches, and the number of batches of each size. */
export const batches = async (connections: Connected, model: string, server: keyof Connected["servers"]) => {
  const { inferenceCount, executionCount, batchStats } = await statistics(connections, model, server)
  return {
    rows: Number(inferenceCount),
    executions: Number(executionCount),
    sizes: Object.fromEntries(
      batchStats.map(({ batchSize, computeInfer }) => [String(batchSize), Number(computeInfer?.count)]),
    ),
  }
}

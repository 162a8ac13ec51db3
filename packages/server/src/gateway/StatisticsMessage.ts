/**
 * Encodes the counters of models as the message of the statistics extension, and as its JSON. ModelStatistics.ts of
 * core defines the counts.
 */
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import type {
  BatchStatistics,
  ResponseStatistics,
  StatisticDuration,
  ModelStatistics,
} from "@nereid/core/internal/metrics/ModelStatistics"
import {
  type ModelStatisticsResponse,
  ModelStatisticsResponseSchema,
  ModelStatisticsSchema,
} from "@nereid/protocol/grpc_service"
import { print } from "@nereid/core/internal/codec/protobuf/MessageJson"

type ModelStatisticsInit = MessageInitShape<typeof ModelStatisticsSchema>

export const make = (models: ReadonlyArray<RunningModel>): ModelStatisticsResponse =>
  create(ModelStatisticsResponseSchema, { modelStats: models.map(modelStatistics) })

export const json = (response: ModelStatisticsResponse) => ({
  model_stats: response.modelStats.map((statistics) => inOrder(print(ModelStatisticsSchema, statistics))),
})

/** In the order of the protocol's JSON, where the response statistics come before these. */
const inOrder = ({ batch_stats, memory_usage, ...others }: JsonObject) => ({ ...others, batch_stats, memory_usage })

const modelStatistics = ({ description: { name, version, statistics } }: RunningModel): ModelStatisticsInit => ({
  name,
  version,
  lastInference: BigInt(statistics.lastInference),
  inferenceCount: BigInt(statistics.inferenceCount),
  executionCount: BigInt(statistics.executionCount),
  inferenceStats: inferStatistics(statistics),
  responseStats: Object.fromEntries([...statistics.responses].map(responseStatistics)),
  batchStats: [...statistics.batches].toSorted(([a], [b]) => a - b).map(batchStatistics),
})

const inferStatistics = (statistics: ModelStatistics) => ({
  success: duration(statistics.success),
  fail: duration(statistics.fail),
  queue: duration(statistics.queue),
  computeInput: duration(statistics.computeInput),
  computeInfer: duration(statistics.computeInfer),
  computeOutput: duration(statistics.computeOutput),
  cacheHit: duration(statistics.cacheHit),
  cacheMiss: duration(statistics.cacheMiss),
})

const batchStatistics = ([rows, batch]: readonly [number, BatchStatistics]) => ({
  batchSize: BigInt(rows),
  computeInput: duration(batch.computeInput),
  computeInfer: duration(batch.computeInfer),
  computeOutput: duration(batch.computeOutput),
})

const responseStatistics = ([index, response]: readonly [number, ResponseStatistics]) => [
  index,
  {
    computeInfer: duration(response.computeInfer),
    computeOutput: duration(response.computeOutput),
    success: duration(response.success),
    fail: duration(response.fail),
    emptyResponse: duration(response.emptyResponse),
    cancel: duration(response.cancel),
  },
]

/** The parts of a request are measured apart, so a difference of them may be a fraction, or less than nothing. */
const duration = ({ count, ns }: StatisticDuration) => ({
  count: BigInt(count),
  ns: BigInt(Math.max(0, Math.round(ns))),
})

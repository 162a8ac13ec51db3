/**
 * Server-side times of requests, from the difference of the server's counters before and after a round. Requests of
 * other clients during the round are included.
 */
import type { ModelStatistics, ModelStatisticsResponse, StatisticDuration } from "@nereid/protocol/grpc_service"

/** Counters of a model, summed over its versions. */
export interface Counters {
  /** Requests that succeeded. */
  readonly requests: number
  /** Total time of all requests, in milliseconds. */
  readonly queue: number
  readonly compute: number
  /** Numbers of inferred rows and of executions. */
  readonly inferences: number
  readonly executions: number
  /** Requests that were answered without the model being run. */
  readonly cacheHits: number
}

/** Undefined where the model is not among them. */
export const read = (response: ModelStatisticsResponse | undefined, model: string): Counters | undefined => {
  const ofModel = response?.modelStats.filter(({ name }) => name === model) ?? []
  const sum = (of: (statistics: ModelStatistics) => number) => ofModel.reduce((total, next) => total + of(next), 0)
  if (ofModel.length === 0) return undefined
  return {
    requests: sum(({ inferenceStats }) => Number(inferenceStats?.success?.count ?? 0)),
    queue: sum(({ inferenceStats }) => milliseconds(inferenceStats?.queue)),
    compute: sum(
      ({ inferenceStats }) =>
        milliseconds(inferenceStats?.computeInput) +
        milliseconds(inferenceStats?.computeInfer) +
        milliseconds(inferenceStats?.computeOutput),
    ),
    inferences: sum(({ inferenceCount }) => Number(inferenceCount)),
    executions: sum(({ executionCount }) => Number(executionCount)),
    cacheHits: sum(({ inferenceStats }) => Number(inferenceStats?.cacheHit?.count ?? 0)),
  }
}

const milliseconds = (duration: StatisticDuration | undefined): number => Number(duration?.ns ?? 0) / 1e6

/** Average server time of a request. */
export interface ServerShare {
  readonly requests: number
  /** Milliseconds of a request: waiting for an instance, and in one, from its first input to its last output. */
  readonly queue: number
  readonly compute: number
  /** Rows that the model was run for at a time. */
  readonly meanBatch: number
  readonly cacheHits: number
}

/** Undefined where nothing was counted, or the counters began anew. */
export const between = (before: Counters | undefined, after: Counters | undefined): ServerShare | undefined => {
  if (before === undefined || after === undefined) return undefined
  const requests = after.requests - before.requests
  const executions = after.executions - before.executions
  if (requests <= 0 || executions < 0) return undefined
  return {
    requests,
    queue: (after.queue - before.queue) / requests,
    compute: (after.compute - before.compute) / requests,
    meanBatch: executions === 0 ? 0 : (after.inferences - before.inferences) / executions,
    cacheHits: after.cacheHits - before.cacheHits,
  }
}

/** Statistics of a model over HTTP and over gRPC, which must be equal. */
import { create, fromBinary, toBinary, toJson } from "@bufbuild/protobuf"
import { Client, credentials } from "@grpc/grpc-js"
import { expect } from "vitest"
import { ModelStatisticsRequestSchema, ModelStatisticsResponseSchema } from "@nereid/protocol/grpc_service"
import { Effect } from "effect"
import { http, type Ports } from "./SequenceCalls.ts"

export interface Counts {
  readonly inferences: number
  readonly executions: number
  /** Executions by their batch sizes. */
  readonly sizes: Readonly<Record<string, number>>
}

interface Shown {
  readonly model_stats: ReadonlyArray<{
    readonly inference_count?: number | string
    readonly execution_count?: number | string
    readonly batch_stats?: ReadonlyArray<{
      readonly batch_size: number | string
      readonly compute_infer: { readonly count: number | string }
    }>
  }>
}

const counts = ({ model_stats: [stats] }: Shown): Counts => ({
  inferences: Number(stats?.inference_count ?? 0),
  executions: Number(stats?.execution_count ?? 0),
  sizes: Object.fromEntries(
    (stats?.batch_stats ?? []).map(({ batch_size, compute_infer }) => [batch_size, Number(compute_infer.count)]),
  ),
})

const overGrpc = ({ grpc }: Ports, name: string) =>
  Effect.callback<Counts>((resume) => {
    const client = new Client(`127.0.0.1:${grpc}`, credentials.createInsecure())
    client.makeUnaryRequest(
      "/inference.GRPCInferenceService/ModelStatistics",
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => fromBinary(ModelStatisticsResponseSchema, bytes),
      toBinary(ModelStatisticsRequestSchema, create(ModelStatisticsRequestSchema, { name })),
      (error, response) => {
        client.close()
        if (response === undefined) return resume(Effect.die(error))
        const shown: unknown = toJson(ModelStatisticsResponseSchema, response, { useProtoFieldName: true })
        resume(Effect.succeed(counts(JSON.parse(JSON.stringify(shown)))))
      },
    )
  })

export const statistics = Effect.fnUntraced(function* (ports: Ports, model: string) {
  const { text } = yield* http(ports, `/v2/models/${model}/stats`)
  const found = counts(JSON.parse(text))
  expect(yield* overGrpc(ports, model)).toEqual(found)
  return found
})

import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { ModelMetadataResponseSchema } from "@nereid/protocol/grpc_service"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { expect, it } from "vitest"
import { contract } from "./MetadataMessage.ts"

const sequenceOf = (config: MessageInitShape<typeof ModelConfigSchema> | undefined) =>
  contract(create(ModelMetadataResponseSchema), config && create(ModelConfigSchema, config)).sequence

const batching = (maxSequenceIdleMicroseconds: bigint, iterativeSequence = false) =>
  ({
    schedulingChoice: { case: "sequenceBatching", value: { maxSequenceIdleMicroseconds, iterativeSequence } },
  }) as const

it("a configuration says whether requests belong to sequences, and how long one may be idle", () => {
  expect(sequenceOf(batching(5_000_000n))).toEqual({ maxIdle: 5_000_000 })
  expect(sequenceOf({})).toBe(false)
  expect(sequenceOf({ schedulingChoice: { case: "dynamicBatching", value: {} } })).toBe(false)
})

it("a sequence without a limit has that of Triton, and one of more than a lifetime has none", () => {
  expect(sequenceOf(batching(0n))).toEqual({ maxIdle: 1_000_000 })
  expect(sequenceOf(batching(BigInt(Number.MAX_SAFE_INTEGER)))).toEqual({ maxIdle: undefined })
})

it("an ensemble, a model that runs step by step and a server without configurations do not say it", () => {
  expect(sequenceOf({ schedulingChoice: { case: "ensembleScheduling", value: {} } })).toBeUndefined()
  expect(sequenceOf(batching(1n, true))).toBeUndefined()
  expect(sequenceOf(undefined)).toBeUndefined()
})

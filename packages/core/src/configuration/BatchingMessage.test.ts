/** Configurations as the engine takes them, and those that it cannot. */
import { create, type MessageInitShape } from "@bufbuild/protobuf"
import { expect, it } from "@effect/vitest"
import { Duration, Result } from "effect"
import {
  BatchInput_Kind,
  DataType,
  ModelConfigSchema,
  ModelDynamicBatchingSchema,
  ModelQueuePolicy_TimeoutAction,
} from "@nereid/protocol/model_config"
import * as BatchingMessage from "./BatchingMessage.ts"

it("omitted fields have the defaults of the engine", () => {
  expect(BatchingMessage.queueing(create(ModelDynamicBatchingSchema))).toBeUndefined()
  const sized = create(ModelDynamicBatchingSchema, { defaultQueuePolicy: { maxQueueSize: 9 } })
  expect(BatchingMessage.queueing(sized)).toBeUndefined()
})

it("levels, policies and the order of answers are taken over", () => {
  const message = create(ModelDynamicBatchingSchema, {
    preserveOrdering: true,
    priorityLevels: 2n ** 64n - 1n,
    defaultPriorityLevel: 5n,
    defaultQueuePolicy: { defaultTimeoutMicroseconds: 1500n, allowTimeoutOverride: true },
    priorityQueuePolicy: {
      "18446744073709551615": { timeoutAction: ModelQueuePolicy_TimeoutAction.DELAY, maxQueueSize: 7 },
    },
  })
  expect(BatchingMessage.queueing(message)).toEqual({
    preserveOrdering: true,
    priorityLevels: 2n ** 64n - 1n,
    defaultPriorityLevel: 5n,
    defaultPolicy: {
      maxQueueSize: 1024,
      defaultTimeout: Duration.micros(1500n),
      timeoutAction: "REJECT",
      allowTimeoutOverride: true,
    },
    policies: new Map([
      [
        2n ** 64n - 1n,
        { maxQueueSize: 7, defaultTimeout: Duration.infinity, timeoutAction: "DELAY", allowTimeoutOverride: false },
      ],
    ]),
  })
})

type Init = MessageInitShape<typeof ModelConfigSchema>

const flat = (more: Init) =>
  BatchingMessage.flat(
    create(ModelConfigSchema, {
      maxBatchSize: 4,
      input: [{ name: "X" }, { name: "Z", allowRaggedBatch: true }],
      output: [{ name: "Y" }],
      ...more,
    }),
  )

const counts = { kind: BatchInput_Kind.BATCH_ITEM_SHAPE, dataType: DataType.TYPE_FP32, sourceInput: ["Z"] }

it("without a ragged input or a tensor made for one no batch is ragged", () => {
  expect(Result.getOrThrow(flat({ input: [{ name: "X" }] }))).toBeUndefined()
})

it("batch inputs and outputs have the names of their targets", () => {
  expect(
    Result.getOrThrow(
      flat({
        batchInput: [{ ...counts, targetName: ["A", "B"] }],
        batchOutput: [{ targetName: ["Y"], sourceInput: ["X"] }],
      }),
    ),
  ).toEqual({
    inputs: ["Z"],
    batchInputs: {
      A: { kind: "BATCH_ITEM_SHAPE", datatype: "FP32", source: "Z" },
      B: { kind: "BATCH_ITEM_SHAPE", datatype: "FP32", source: "Z" },
    },
    batchOutputs: { Y: "X" },
  })
})

it.each<readonly [string, Init]>([
  [
    "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 0",
    { batchInput: [{ ...counts, sourceInput: [] }] },
  ],
  [
    "batch input kind 'BATCH_ITEM_SHAPE' expects 1 source input, got 2",
    { batchInput: [{ ...counts, sourceInput: ["X", "Z"] }] },
  ],
  ["unknown source input name 'Q'", { batchInput: [{ ...counts, sourceInput: ["Q"] }] }],
  [
    "batch input data type must be TYPE_INT32 or TYPE_FP32",
    { batchInput: [{ ...counts, dataType: DataType.TYPE_INT64 }] },
  ],
  [
    "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0",
    { batchOutput: [{ targetName: ["Y"] }] },
  ],
  ["unknown source input name 'Q'", { batchOutput: [{ targetName: ["Y"], sourceInput: ["Q"] }] }],
  ["unknown target output name 'X'", { batchOutput: [{ targetName: ["X"], sourceInput: ["Z"] }] }],
  [
    "target output name 'Y' can only be specified once",
    { batchOutput: [{ targetName: ["Y", "Y"], sourceInput: ["Z"] }] },
  ],
])("refused: %s", (message, config) => {
  expect(flat(config)).toEqual(Result.fail(message))
})

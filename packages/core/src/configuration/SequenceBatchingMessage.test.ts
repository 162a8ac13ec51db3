import { create, toJson } from "@bufbuild/protobuf"
import { ModelSequenceBatchingSchema } from "@nereid/protocol/model_config"
import { expect, test } from "vitest"
import { resolve } from "../model/Batching.ts"
import { sequenceDefaults, type Sequencing } from "../model/Sequencing.ts"
import * as SequenceBatchingMessage from "./SequenceBatchingMessage.ts"

const sequencing: Sequencing = {
  strategy: { _tag: "free", slots: 100 },
  maxIdleLimit: Infinity,
  maxIdle: 5e9,
  isIterative: false,
  controls: [
    { kind: "START", name: "FIRST", datatype: "FP32", falseValue: 0, trueValue: 1 },
    { kind: "CORRID", name: "ID", datatype: "BYTES" },
  ],
  states: [{ input: "IN", output: "OUT", datatype: "INT32", dims: [-1, 2], initial: undefined }],
  ...sequenceDefaults,
}

const messageOf = (overrides: Partial<Sequencing>) => {
  const batching = resolve("m", 8, { inputs: [], outputs: [] }, { maxQueueDelay: "2 millis", preferredBatchSizes: [4] })
  const message = SequenceBatchingMessage.make({ ...sequencing, ...overrides }, batching, 8)
  return toJson(ModelSequenceBatchingSchema, create(ModelSequenceBatchingSchema, message))
}

test("the sequences of a model in code are shown as those of the strategy oldest", () => {
  expect(messageOf({})).toEqual({
    oldest: { maxCandidateSequences: 100, preferredBatchSize: [4], maxQueueDelayMicroseconds: "2000" },
    maxSequenceIdleMicroseconds: "5000000",
    controlInput: [
      { name: "FIRST", control: [{ fp32FalseTrue: [0, 1] }] },
      { name: "ID", control: [{ kind: "CONTROL_SEQUENCE_CORRID", dataType: "TYPE_STRING" }] },
    ],
    state: [{ inputName: "IN", outputName: "OUT", dataType: "TYPE_INT32", dims: ["-1", "2"] }],
  })
})

test("an unlimited idle time and any number of sequences are the largest numbers of the protocol", () => {
  expect(messageOf({ maxIdle: Infinity, strategy: { _tag: "free", slots: 1e12 } })).toMatchObject({
    maxSequenceIdleMicroseconds: "9007199254740991",
    oldest: { maxCandidateSequences: 2147483647 },
  })
})

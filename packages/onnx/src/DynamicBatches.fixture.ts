/** Instances of which tests see whether batches and outputs were in slots or in messages. No test is in here. */
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { InferenceError } from "@nereid/core/Errors"
import type { Definition } from "@nereid/core/internal/model/Definition"
import type { Fields } from "@nereid/core/internal/model/Field"
import type { ExecutionResult, Instance } from "@nereid/core/internal/instance/Instance"
import { noParameters } from "@nereid/core/internal/request/Request"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import { Effect, Result } from "effect"
import { file } from "../../../test/fixtures/onnx.ts"
import { instances } from "./Instances.fixture.ts"
import * as Slots from "./Slots.ts"
import { type Spawn, spawn } from "./WorkerInstance.ts"

/** One instance, and the memory that it shares with its thread. */
export const started = Effect.fnUntraced(function* (
  definition: Definition<Fields, Fields>,
  bytes: Uint8Array,
  via = spawn,
) {
  const memories: Array<SharedArrayBuffer> = []
  const watched: Spawn = (options) => {
    memories.push(options.workerData.memory)
    return via(options)
  }
  const [instance] = yield* instances(definition, { file: yield* file(bytes) }, watched)
  const control = Slots.control(memories[0]!)
  const way = (sequence: number) => [control[Slots.kindWord(sequence)], control[Slots.outcomeWord(sequence)]]
  return { instance: instance!, way }
})

/** Ways of a batch and its outputs: words of the shared memory. */
export const [inSlot, byMessage, largeOutput] = [
  [Slots.DYNAMIC, Slots.IN_SLOT],
  [Slots.GENERAL, Slots.BY_MESSAGE],
  [Slots.DYNAMIC, Slots.BY_MESSAGE],
]

export const run = (instance: Instance, ...inputs: ReadonlyArray<TypedTensor>) =>
  Effect.callback<ExecutionResult, InferenceError>((resume) => {
    const request = { id: "", inputs, rows: 1, parameters: noParameters, deadline: undefined }
    instance.execute(Batch.make([request]), resume)
  }).pipe(
    Effect.map(({ outcomes: [outcome] }) => {
      if (outcome === undefined || Result.isFailure(outcome)) throw new Error("no response")
      return outcome.success.outputs
    }),
  )

/**
 * An instance of a model with control tensors or state tensors. Its callers see neither: the inputs of each request are
 * followed by them, and the state outputs of a successful request are kept for the next one.
 *
 *   request   inputs ─► inputs, control tensors, state ─► model ─► outputs, new state ─► outputs
 *                                                  ▲                           │
 *                                                  └──────── sequence ◄────────┘
 */
import { Exit, Result } from "effect"
import type { Batch } from "../batch/Batch.ts"
import { ExecutionFailed, type InferenceError } from "../error/InferenceError.ts"
import { type ExecutionResult, type Instance, wrapInstance } from "../instance/Instance.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import type { Request, Response } from "../request/Request.ts"
import { noState, type SequencePosition, type SequenceState } from "../request/SequencePosition.ts"
import type { LentMemory } from "../tensor/LentMemory.ts"
import type { Signature } from "../tensor/TensorSpec.ts"
import type { TypedTensor } from "../tensor/TypedTensor.ts"
import * as ControlTensors from "./ControlTensors.ts"
import * as JoinedStates from "./JoinedStates.ts"
import * as StateTensors from "./StateTensors.ts"

/** Whether the model has tensors that its callers do not see. */
export const isNeeded = ({ controls, states }: Sequencing): boolean => controls.length + states.length > 0

/** The signature that the instance has, from that of its callers. */
export const innerSignature = ({ inputs, outputs }: Signature, { controls, states }: Sequencing): Signature => ({
  inputs: [
    ...inputs,
    ...controls.map(({ name, datatype }) => ({ name, datatype, dims: [1], optional: false })),
    ...states.map(({ input, datatype, dims }) => ({ name: input, datatype, dims, optional: false })),
  ],
  outputs: [
    ...outputs,
    ...hidden({ inputs, outputs }, states).map(({ output, datatype, dims }) => ({
      name: output,
      datatype,
      dims,
      optional: false,
    })),
  ],
})

/** State outputs that callers do not see. */
const hidden = ({ outputs }: Signature, states: Sequencing["states"]) =>
  states.filter(({ output }) => !outputs.some(({ name }) => name === output))

export interface StatefulModel {
  /** Signature that callers see. */
  readonly signature: Signature
  /** Name of the model. */
  readonly model: string
  /** Whether tensors have a batch dimension. */
  readonly batches: boolean
  /** Whether the instance, or a response, may hold inputs after their batch. */
  readonly keepsInputs: boolean
}

export const make = (
  instance: Instance,
  sequencing: Sequencing,
  { signature, model, batches, keepsInputs }: StatefulModel,
): Instance => {
  const { states } = sequencing
  const controls = sequencing.controls.map((control) => ControlTensors.maker(control, batches))
  // Made for each sequence: a handler that writes into it changes no other sequence.
  const initial = () => states.map((state) => StateTensors.initial(state, batches))
  const names = innerSignature(signature, sequencing).outputs.map(({ name }) => name)
  const statePositions = states.map(({ output }) => names.indexOf(output))
  const copiedFrom = signature.outputs.length
  // The others are views of what callers get, whose memory would live as long as the state.
  const isHidden = statePositions.every((position) => position >= copiedFrom)
  // Hot path. Arrays of a known length: one that grows by `push` begins with 17 places.
  const withSequence = (request: Request): Request => {
    const { sequence = unknownPosition } = request
    const { state: memory } = sequence
    const state = (keepsInputs ? memory.handOut() : memory.tensors) ?? initial()
    const { inputs } = request
    return {
      ...request,
      inputs:
        controls.length === 0
          ? inputs.concat(state)
          : inputs.concat(
              controls.map((make) => make(sequence)),
              state,
            ),
    }
  }
  /** The state tensors among the outputs. One that the model leaves out stays as it is. */
  const stateOf = ({ outputs }: Response, state: SequenceState): ReadonlyArray<TypedTensor> => {
    const tensors = statePositions.map((position) => outputs[position])
    if (tensors.every(isTensor)) return tensors
    const before = state.tensors ?? initial()
    return tensors.flatMap((tensor, index) => tensor ?? before[index] ?? [])
  }
  const settled = (
    request: Request | undefined,
    response: Response,
    lent: LentMemory | undefined,
  ): Result.Result<Response, InferenceError> => {
    const { outputs } = response
    const own = outputs.length > copiedFrom ? { ...response, outputs: outputs.slice(0, copiedFrom) } : response
    const state = request?.sequence?.state
    if (states.length === 0 || state === undefined) return Result.succeed(own)
    const tensors = stateOf(response, state)
    const overwrites = !keepsInputs && !areViewed(state.tensors, own.outputs)
    return state.keep(tensors, overwrites, lent)
      ? Result.succeed(own)
      : Result.fail(tooLarge(model, tensors, 1, sequencing))
  }
  const settledAll = (
    requests: ReadonlyArray<Request>,
    { outcomes, lent: memory }: ExecutionResult,
  ): ExecutionResult["outcomes"] => {
    const lent = isHidden ? memory : undefined
    const all: Array<ExecutionResult["outcomes"][number]> = []
    for (const outcome of outcomes) {
      all.push(Result.isSuccess(outcome) ? settled(requests[all.length], outcome.success, lent) : outcome)
    }
    return all
  }
  const joins = instance.takesJoined === true && controls.length === 0 && isHidden && batches
  const joinedOf = ({ requests, padding }: Batch) =>
    joins && requests.length > 1 && padding === undefined ? JoinedStates.gather(requests, initial) : undefined
  return wrapInstance(instance, (batch, settle) => {
    const joined = joinedOf(batch)
    const { requests } = batch
    const inner = joined ? { ...batch, joined } : { ...batch, requests: requests.map(withSequence) }
    return instance.execute({ ...inner, copiedFrom }, (exit) => {
      if (Exit.isFailure(exit)) return settle(exit)
      const { value } = exit
      const { outcomes, joined: states } = value
      const kept =
        states === undefined
          ? settledAll(requests, value)
          : JoinedStates.scatter(requests, outcomes, states, () => tooLarge(model, states, requests.length, sequencing))
      settle(Exit.succeed({ ...value, outcomes: kept }))
    })
  })
}

/** Whether outputs may be views of the state before, which code can return. */
const areViewed = (state: ReadonlyArray<TypedTensor> | undefined, outputs: Response["outputs"]): boolean => {
  if (state === undefined) return false
  for (const { bytes } of state) for (const output of outputs) if (output?.bytes.buffer === bytes.buffer) return true
  return false
}

const isTensor = (tensor: TypedTensor | undefined): tensor is TypedTensor => tensor !== undefined

/** Of a request outside of any sequence, such as a warm-up. */
const unknownPosition: SequencePosition = {
  id: 0n,
  isStart: false,
  isEnd: false,
  isReady: true,
  state: noState(),
}

/** The error for a state of these tensors, of which it is one of so many rows. */
const tooLarge = (
  model: string,
  tensors: ReadonlyArray<TypedTensor>,
  rows: number,
  { maxStateBytes }: Sequencing,
): ExecutionFailed => {
  let bytes = 0
  for (const tensor of tensors) bytes += tensor.bytes.length / rows
  const limit =
    bytes > maxStateBytes ? `the limit of ${maxStateBytes} bytes` : "the limit for all sequences of the model"
  return new ExecutionFailed({
    message: `the state of the sequence has ${bytes} bytes, which exceeds ${limit}: model '${model}' has ended the sequence`,
  })
}

/**
 * The sequences of a model from its `sequence_batching`, with the files of initial states. SequenceCheck.ts has checked
 * the controls. The messages are Triton's.
 */
import { Effect, Result } from "effect"
import { join } from "node:path"
import {
  type ControlTensor,
  type SequenceStrategy,
  type Sequencing,
  type StateTensor,
} from "@nereid/core/internal/model/Sequencing"
import { byteWidth } from "@nereid/core/internal/tensor/DataType"
import { elementCount, TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import {
  type ModelConfig,
  type ModelSequenceBatching,
  ModelSequenceBatching_Control_Kind as Kind,
  type ModelSequenceBatching_Control as Control,
  type ModelSequenceBatching_InitialState as InitialState,
  type ModelSequenceBatching_State as State,
} from "@nereid/protocol/model_config"
import { datatypeOf } from "../config/Declaration.ts"
import { invalid, type LoadFailure, refuse } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import * as SequenceLimits from "./SequenceLimits.ts"

/** Undefined for a model without `sequence_batching`. `path` is the model's directory. */
export const make = Effect.fn("SequencePlan.make")(function* (
  { schedulingChoice, maxBatchSize, parameters }: ModelConfig,
  path: string,
): Effect.fn.Return<Sequencing | undefined, LoadFailure> {
  if (schedulingChoice.case !== "sequenceBatching") return undefined
  const batching = schedulingChoice.value
  if ("TRITON_BATCH_STRATEGY_PATH" in parameters) {
    return yield* invalid(
      "TRITON_BATCH_STRATEGY_PATH cannot be specified with sequence batcher, using default batching strategy",
    )
  }
  const idleMicros = Number(batching.maxSequenceIdleMicroseconds)
  const limits = yield* Effect.fromResult(Result.mapError(SequenceLimits.make(parameters, idleMicros), invalid))
  yield* refuse(stateProblem(batching.state))
  return {
    strategy: strategy(batching, maxBatchSize),
    maxIdle: idleMicros * 1e3,
    isIterative: batching.iterativeSequence,
    controls: batching.controlInput.flatMap(({ name, control }) => control.map((one) => controlTensor(name, one))),
    states: yield* Effect.forEach(batching.state, (state) => stateTensor(state, path, limits)),
    ...limits,
  }
})

const strategy = (
  { strategyChoice: { case: kind, value } }: ModelSequenceBatching,
  maxBatchSize: number,
): SequenceStrategy => {
  const rows = Math.max(1, maxBatchSize)
  if (kind === "oldest") {
    const { maxCandidateSequences: candidates } = value
    return { _tag: "oldest", slots: candidates > 0 ? candidates : rows }
  }
  return {
    _tag: "direct",
    slots: rows,
    maxQueueDelay: Number(value?.maxQueueDelayMicroseconds ?? 0n) * 1e3,
    minSlotUtilization: value?.minimumSlotUtilization ?? 0,
  }
}

const flags: ReadonlyMap<Kind, "START" | "END" | "READY"> = new Map([
  [Kind.CONTROL_SEQUENCE_START, "START"],
  [Kind.CONTROL_SEQUENCE_END, "END"],
  [Kind.CONTROL_SEQUENCE_READY, "READY"],
])

const controlTensor = (name: string, control: Control): ControlTensor => {
  const { int32FalseTrue, fp32FalseTrue, boolFalseTrue } = control
  const kind = flags.get(control.kind)
  if (kind === undefined) return { kind: "CORRID", name, datatype: idType(control) }
  const flag = (datatype: "INT32" | "FP32" | "BOOL", [falseValue = 0, trueValue = 1]: ReadonlyArray<number>) => ({
    kind,
    name,
    datatype,
    falseValue,
    trueValue,
  })
  if (fp32FalseTrue.length > 0) return flag("FP32", fp32FalseTrue)
  if (boolFalseTrue.length > 0) return flag("BOOL", boolFalseTrue.map(Number))
  return flag("INT32", int32FalseTrue)
}

/** One of those that SequenceCheck.ts allows. */
const idType = (control: Control): Extract<ControlTensor, { kind: "CORRID" }>["datatype"] => {
  const datatype = datatypeOf(control)
  return datatype === "INT64" || datatype === "UINT32" || datatype === "INT32" || datatype === "BYTES"
    ? datatype
    : "UINT64"
}

const stateProblem = (states: ReadonlyArray<State>): string | undefined => {
  const names = new Set<string>()
  for (const state of states) {
    const { inputName, initialState, dims } = state
    const [initial] = initialState
    if (initialState.length > 1) {
      return (
        `initial_state field for state input '${inputName}' must contain exactly one or zero element. ` +
        `Found '${initialState.length}' elements.`
      )
    }
    if (initial !== undefined) {
      const problem = initialProblem(state, initial, dims)
      if (problem !== undefined) return problem
    }
    if (names.has(inputName)) return `State input name '${inputName}' specified more than once.`
    names.add(inputName)
    if (datatypeOf(state) === undefined) return `state input '${inputName}' has no data type`
  }
  return undefined
}

const initialProblem = (
  { inputName, dataType }: State,
  initial: InitialState,
  dims: ReadonlyArray<bigint>,
): string | undefined => {
  if (initial.dataType !== dataType) {
    return `The data type used for 'initial_state' field of state '${inputName}' does not match the state data type.`
  }
  if (initial.name === "") {
    return `Field 'name' must be set when using initial_state for state input '${inputName}'.`
  }
  if (initial.dims.length !== dims.length) {
    return (
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input " +
      `'${inputName}'. ${initial.dims.length} != ${dims.length}`
    )
  }
  for (const [axis, extent] of initial.dims.entries()) {
    if (extent < 0n) return `'initial_state' field for state input name '${inputName}' contains variable dimensions.`
    const expected = dims[axis] ?? -1n
    if (expected >= 0n && extent !== expected) {
      return `'initial_state' dim for input name '${inputName}' doesn't match 'state' dim description. ${extent} != ${expected}`
    }
  }
  if (initial.stateData.case === undefined) {
    return `initial_state setting expects state'${inputName}' to have state_data set`
  }
  return undefined
}

const stateTensor = Effect.fnUntraced(function* (
  state: State,
  path: string,
  limits: SequenceLimits.SequenceLimits,
): Effect.fn.Return<StateTensor, LoadFailure> {
  const { inputName, outputName, dims, initialState } = state
  const datatype = datatypeOf(state) ?? "FP32"
  const [initial] = initialState
  const read = initial && (yield* initialTensor(initial, datatype, path, limits))
  return { input: inputName, output: outputName, datatype, dims: dims.map(Number), initial: read }
})

/** The extents and the contents of a new state; zeros for `zero_data`, whatever its value. */
const initialTensor = Effect.fnUntraced(function* (
  { dims, stateData }: InitialState,
  datatype: StateTensor["datatype"],
  path: string,
  { maxStateBytes }: SequenceLimits.SequenceLimits,
): Effect.fn.Return<TypedTensor, LoadFailure> {
  const shape = dims.map(Number)
  const expected = elementCount(shape) * (byteWidth(datatype) ?? 4)
  if (expected > maxStateBytes) {
    return yield* invalid(`an initial state of ${expected} bytes exceeds the limit of ${maxStateBytes} bytes`)
  }
  if (stateData.case !== "dataFile") return new TypedTensor(datatype, shape, new Uint8Array(expected))
  const file = yield* ModelDirectory.below(join(path, "initial_state"), stateData.value)
  const bytes = yield* ModelDirectory.contents(file, maxStateBytes)
  if (byteWidth(datatype) === undefined) return new TypedTensor(datatype, shape, bytes)
  if (bytes.length >= expected) return new TypedTensor(datatype, shape, bytes.slice(0, expected))
  return yield* invalid(
    `initial_state setting expects ${expected} bytes, but the data provided from ${stateData.value}only has ` +
      `${bytes.length} bytes.`,
  )
})

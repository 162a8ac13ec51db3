/** The tensors that tell a model the position of a request in its sequence: one element for each row. */
import type { ControlTensor } from "../model/Sequencing.ts"
import type { SequencePosition } from "../request/SequencePosition.ts"
import { make, type Shape, type TypedTensor } from "../tensor/TypedTensor.ts"

/** Makes the tensor of one request. */
export type MakeControl = (position: SequencePosition) => TypedTensor

/** `batches`: whether the tensors have a batch dimension. */
export const maker = (control: ControlTensor, batches: boolean): MakeControl => {
  const shape = batches ? [1, 1] : [1]
  if (control.kind === "CORRID") return (position) => idTensor(control.datatype, shape, position)
  const { kind } = control
  const [no, yes] = [flagTensor(control, shape, control.falseValue), flagTensor(control, shape, control.trueValue)]
  return (position) => (flagOf(position, kind) ? yes : no)
}

const flagOf = ({ isStart, isEnd, isReady }: SequencePosition, kind: "START" | "END" | "READY"): boolean =>
  kind === "START" ? isStart : kind === "END" ? isEnd : isReady

const flagTensor = (
  { datatype }: Exclude<ControlTensor, { kind: "CORRID" }>,
  shape: Shape,
  value: number,
): TypedTensor => {
  if (datatype === "FP32") return make(datatype, shape, Float32Array.of(value))
  if (datatype === "BOOL") return make(datatype, shape, Uint8Array.of(value === 0 ? 0 : 1))
  return make(datatype, shape, Int32Array.of(value))
}

/** As in Triton, 32 bits have the low half of a number. */
const idTensor = (
  datatype: Extract<ControlTensor, { kind: "CORRID" }>["datatype"],
  shape: Shape,
  { id }: SequencePosition,
): TypedTensor => {
  if (datatype === "BYTES") return make(datatype, shape, [new TextEncoder().encode(typeof id === "string" ? id : "")])
  const number = typeof id === "bigint" ? id : 0n
  if (datatype === "UINT64") return make(datatype, shape, BigUint64Array.of(number))
  if (datatype === "INT64") return make(datatype, shape, BigInt64Array.of(number))
  const low = Number(BigInt.asUintN(32, number))
  return datatype === "UINT32" ? make(datatype, shape, Uint32Array.of(low)) : make(datatype, shape, Int32Array.of(low))
}

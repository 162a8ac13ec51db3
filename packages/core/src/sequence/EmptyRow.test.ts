import { noState } from "../request/SequencePosition.ts"
import { expect, it } from "vitest"
import { noParameters, type Request } from "../request/Request.ts"
import type { SequenceId, SequencePosition } from "../request/SequencePosition.ts"
import { make, type TypedTensor } from "../tensor/TypedTensor.ts"
import * as ControlTensors from "./ControlTensors.ts"
import * as EmptyRow from "./EmptyRow.ts"

const text = (value: string) => make("BYTES", [1, 1], [new TextEncoder().encode(value)])

const request = (id: SequenceId, state?: ReadonlyArray<TypedTensor>): Request => ({
  id: "one",
  inputs: [make("FP32", [1, 2], Float32Array.of(1, 2)), undefined, text("full")],
  rows: 1,
  parameters: { ...noParameters, sequence_id: id },
  deadline: 5,
  sequence: {
    id,
    isStart: true,
    isEnd: true,
    isReady: true,
    state: { ...noState(), tensors: state, shapeKey: "key", value: "secret", onEnd: () => {} },
  },
})

const position = (row: Request): SequencePosition => {
  if (row.sequence === undefined) throw new Error("no sequence")
  return row.sequence
}

it("an empty row has zeros and empty strings in the shapes of the request, and nothing else of it", () => {
  const row = EmptyRow.make(request(7n))
  expect(row).toMatchObject({ id: "", rows: 1, parameters: noParameters, deadline: undefined })
  const [numbers, absent, string] = row.inputs
  expect(numbers).toMatchObject({ datatype: "FP32", shape: [1, 2], data: new Float32Array(2) })
  expect(absent).toBeUndefined()
  expect(string).toMatchObject({ datatype: "BYTES", shape: [1, 1], data: [new Uint8Array()] })
})

it("an empty row has no flag and no id", () => {
  const flags = { isStart: false, isEnd: false, isReady: false }
  expect(position(EmptyRow.make(request(7n)))).toMatchObject({ id: 0n, ...flags })
  expect(position(EmptyRow.make(request("seven")))).toMatchObject({ id: "", ...flags })
})

it("the control tensors of an empty row are false, 0 and an empty string", () => {
  const ready = ControlTensors.maker(
    { kind: "READY", name: "READY", datatype: "FP32", falseValue: 0, trueValue: 1 },
    true,
  )
  const correlation = (datatype: "UINT64" | "INT32" | "BYTES") =>
    ControlTensors.maker({ kind: "CORRID", name: "CORRID", datatype }, true)
  expect(ready(position(request(7n))).data).toEqual(Float32Array.of(1))
  const [number, string] = [position(EmptyRow.make(request(7n))), position(EmptyRow.make(request("seven")))]
  expect(ready(number).data).toEqual(Float32Array.of(0))
  expect(correlation("UINT64")(number).data).toEqual(BigUint64Array.of(0n))
  expect(correlation("INT32")(number).data).toEqual(Int32Array.of(0))
  expect(correlation("BYTES")(string).data).toEqual([new Uint8Array()])
})

it("an empty row has a state of zeros, and keeps none", () => {
  const { state } = position(EmptyRow.make(request(7n, [make("INT32", [1, 2], Int32Array.of(3, 4)), text("full")])))
  expect(state.tensors?.map(({ data }) => data)).toEqual([new Int32Array(2), [new Uint8Array()]])
  expect(state).toMatchObject({ shapeKey: undefined, value: undefined, onEnd: undefined })
  expect(position(EmptyRow.make(request(7n))).state.tensors).toBeUndefined()
})

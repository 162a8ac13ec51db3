/**
 * Encodes a batch as the EXECUTE frame of a model process. A model.py receives the requests as they are. A function
 * receives the rows of all of them as one tensor for each input, whose bytes lie one behind another in the frame: no
 * tensor is joined here.
 */
import * as Batch from "@nereid/core/internal/batch/Batch"
import type { Request } from "@nereid/core/internal/request/Request"
import * as SharedBytes from "@nereid/core/internal/tensor/SharedBytes"
import type { Signature } from "@nereid/core/internal/tensor/TensorSpec"
import type { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import * as KnownParameters from "@nereid/core/internal/wire/KnownParameters"
import { FrameBody } from "./FrameBody.ts"
import * as ParameterText from "./ParameterText.ts"
import * as TensorMessage from "./TensorMessage.ts"

export interface ExecuteMessage {
  readonly header: string
  readonly body: FrameBody
}

/** Encodes a batch under the number of its execution. */
export type Encoder = (execution: number, batch: Batch.Batch) => ExecuteMessage

const sequenceStart = 1
const sequenceEnd = 2

/** For a model.py. `mapsShared`: whether the process can map shared memory. */
export const requests = ({ inputs }: Signature, mapsShared: boolean): Encoder => {
  const prefixes = inputs.map(TensorMessage.prefix)
  return (execution, batch) => {
    const body = new FrameBody()
    let header = `{"x":${execution},"r":[`
    for (let index = 0; index < batch.requests.length; index++) {
      const request = batch.requests[index]
      if (request === undefined) continue
      if (index > 0) header += ","
      header += requestText(prefixes, request, body, mapsShared)
    }
    return { header: `${header}]}`, body }
  }
}

const requestText = (
  prefixes: ReadonlyArray<string>,
  request: Request,
  body: FrameBody,
  mapsShared: boolean,
): string => {
  let text = '{"i":['
  let isFirst = true
  for (let position = 0; position < request.inputs.length; position++) {
    const tensor = request.inputs[position]
    const prefix = prefixes[position]
    if (tensor === undefined || prefix === undefined) continue
    if (!isFirst) text += ","
    isFirst = false
    const shared = mapsShared ? SharedBytes.of(tensor) : undefined
    if (shared === undefined) {
      text += TensorMessage.description(prefix, tensor.shape, tensor.bytes.length)
      body.add(tensor.bytes)
    } else text += TensorMessage.sharedDescription(prefix, tensor.shape, shared)
  }
  return `${text}]${properties(request)}${mapsShared ? targetsText(request) : ""}}`
}

/** Where outputs go, with the maximum of their bytes. */
const targetsText = ({ targets }: Request): string => {
  if (targets === undefined) return ""
  const entries: Array<string> = []
  for (const [name, shared] of targets) {
    entries.push(`${JSON.stringify(name)}:[${TensorMessage.place(shared)},${shared.length}]`)
  }
  return `,"m":{${entries}}`
}

/** Everything of a request but its inputs; most requests have none of it. */
const properties = (request: Request): string => {
  const { id, parameters, requestedOutputs, sequence, trace } = request
  let text = id === "" ? "" : `,"id":${JSON.stringify(id)}`
  let flags = 0
  let correlation: unknown = sequence?.id
  if (sequence !== undefined) flags = (sequence.isStart ? sequenceStart : 0) | (sequence.isEnd ? sequenceEnd : 0)
  let own = parameters
  for (const name in parameters) {
    if (!KnownParameters.isReserved(name)) continue
    if (own === parameters) own = { ...parameters }
    const value = parameters[name]
    // A copy of this request alone.
    Reflect.deleteProperty(own, name)
    if (name === "timeout" && typeof value === "bigint") text += `,"to":${value}`
    if (sequence !== undefined) continue
    if (name === "sequence_id") correlation = value
    if (name === "sequence_start" && value === true) flags |= sequenceStart
    if (name === "sequence_end" && value === true) flags |= sequenceEnd
  }
  if (typeof correlation === "string" && correlation !== "") text += `,"c":${JSON.stringify(correlation)}`
  else if (typeof correlation === "bigint" && correlation !== 0n) text += `,"c":${correlation}`
  if (flags !== 0) text += `,"f":${flags}`
  const parameterText = ParameterText.print(own)
  if (parameterText !== undefined) text += `,"p":${JSON.stringify(parameterText)}`
  if (requestedOutputs !== undefined && requestedOutputs.length > 0) text += `,"o":${JSON.stringify(requestedOutputs)}`
  const span = trace?.span
  if (span !== undefined) {
    const traceparent = `00-${span.traceId}-${span.spanId}-0${span.sampled ? 1 : 0}`
    text += `,"tr":${JSON.stringify(JSON.stringify({ traceparent }))}`
  }
  return text
}

/** For a function of joined tensors. `batching`: whether axis 0 is the batch. `mapsShared`: as for a model.py. */
export const joined = ({ inputs }: Signature, batching: boolean, mapsShared: boolean): Encoder => {
  const prefixes = inputs.map(TensorMessage.prefix)
  return (execution, batch) => {
    const body = new FrameBody()
    const rows = batch.requests.map((request) => request.rows)
    let header = `{"x":${execution},"j":[${rows}],"i":[`
    const [first] = batch.requests
    // Padded tensors are copies in any case.
    const whole = batch.padding === undefined ? undefined : Batch.inputs(batch)
    let isFirst = true
    for (let position = 0; position < prefixes.length; position++) {
      const tensor = whole === undefined ? first?.inputs[position] : whole[position]
      const prefix = prefixes[position]
      if (tensor === undefined || prefix === undefined) continue
      const isAlone = whole === undefined && batch.requests.length === 1
      const shared = mapsShared && isAlone ? SharedBytes.of(tensor) : undefined
      if (shared !== undefined) {
        if (!isFirst) header += ","
        isFirst = false
        header += TensorMessage.sharedDescription(prefix, tensor.shape, shared)
        continue
      }
      const parts = whole === undefined ? partsOf(batch.requests, position) : [tensor]
      let length = 0
      for (const { bytes } of parts) length += bytes.length
      const shape = whole === undefined && batching ? [batch.rows, ...tensor.shape.slice(1)] : tensor.shape
      if (!isFirst) header += ","
      isFirst = false
      header += TensorMessage.description(prefix, shape, length)
      appendAll(body, parts)
    }
    return { header: `${header}]}`, body }
  }
}

const partsOf = (all: ReadonlyArray<Request>, position: number): ReadonlyArray<TypedTensor> => {
  const parts: Array<TypedTensor> = []
  for (const { inputs } of all) {
    const tensor = inputs[position]
    if (tensor !== undefined) parts.push(tensor)
  }
  return parts
}

const appendAll = (body: FrameBody, parts: ReadonlyArray<Pick<TypedTensor, "bytes">>): void => {
  for (let index = 0; index < parts.length; index++) {
    const bytes = parts[index]?.bytes
    if (bytes === undefined) continue
    if (index === 0) body.add(bytes)
    else body.append(bytes)
  }
}

/**
 * The trace of one request: its timestamps and, at level TENSORS, its tensors, as elements of one JSON array. The
 * elements have Triton's format: https://github.com/triton-inference-server/server/blob/main/docs/user_guide/trace.md
 */
import { isDataType } from "@nereid/core/internal/tensor/DataType"
import type { Trace, TracePoint } from "@nereid/core/internal/request/Request"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { WireRequest, WireResponse, WireTensor } from "@nereid/core/internal/wire/WireRequest"
import type { TraceLevel } from "./TraceSettings.ts"

/** Moments at the ports: when the request began and had come, when its answer began to go and had gone. */
const portPoints = {
  HTTP: ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"],
  GRPC: ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"],
} as const

export type Port = keyof typeof portPoints

/** Elements of a tensor, and tensors of a request, that are printed; a stream may have responses without end. */
const maxElements = 10_000
const maxTensors = 1_000

/** Requests that were made to answer one; a decoupled model may need any number. */
const maxChildren = 1_000

/** Maximum characters of all tensors of a trace, which are kept until the response. */
const maxTextBytes = 4 * 2 ** 20

export class RequestTrace implements Trace {
  readonly #id: number
  readonly #nextId: () => number
  readonly #parentId: number | undefined
  readonly #children: Array<RequestTrace> = []
  readonly #wire: WireRequest
  readonly #version: string
  readonly #levels: ReadonlyArray<TraceLevel>
  readonly #done: (elements: string) => void
  readonly #points: Array<readonly [name: string, nanos: number]> = []
  readonly #tensors: Array<string> = []
  /** Characters that may still be printed. */
  #room = maxTextBytes
  #endedAt: number | undefined
  #port: Port | undefined
  #written = false

  /** `done` takes the elements, once. */
  constructor(options: {
    readonly nextId: () => number
    /** Trace id of the request that caused this one; absent for a request from a client. */
    readonly parentId?: number
    readonly wire: WireRequest
    /** Version of the model. */
    readonly version: string
    readonly levels: ReadonlyArray<TraceLevel>
    readonly done: (elements: string) => void
  }) {
    this.#id = options.nextId()
    this.#nextId = options.nextId
    this.#parentId = options.parentId
    this.#wire = options.wire
    this.#version = options.version
    this.#levels = options.levels
    this.#done = options.done
  }

  at(point: TracePoint, nanos: number): void {
    if (this.#endedAt !== undefined) return
    this.#points.push([point, nanos])
    if (point !== "REQUEST_END") return
    this.#endedAt = nanos
    if (this.#port === undefined) this.#write()
  }

  /** Written with this one. */
  child(modelName: string, version: string): RequestTrace {
    const wire = { ...this.#wire, modelName, modelVersion: version, inputs: [], outputs: [] }
    const trace = new RequestTrace({
      nextId: this.#nextId,
      parentId: this.#id,
      wire,
      version,
      levels: this.#levels,
      done: () => {},
    })
    if (this.#children.length < maxChildren) this.#children.push(trace)
    return trace
  }

  /** Records the arrival of the request on this port. The trace is written after its response. */
  received(port: Port, startedAt: number, nanos: number): void {
    this.#port = port
    const [start, end] = portPoints[port]
    this.#points.push([start, startedAt], [end, nanos])
  }

  /** Records that the response was sent, or that the connection closed. */
  sent(nanos: number): void {
    if (this.#port === undefined) return
    this.at("REQUEST_END", nanos)
    const [, , start, end] = portPoints[this.#port]
    this.#points.push([start, this.#endedAt ?? nanos], [end, nanos])
    this.#write()
  }

  /** A response that it has got; a decoupled model gives any number. */
  responded({ outputs }: WireResponse): void {
    // Only now are the inputs known to be what they say.
    if (this.#tensors.length === 0) this.#print("TENSOR_QUEUE_INPUT", this.#wire.inputs)
    this.#print("TENSOR_BACKEND_OUTPUT", outputs)
  }

  #print(activity: "TENSOR_QUEUE_INPUT" | "TENSOR_BACKEND_OUTPUT", tensors: ReadonlyArray<WireTensor>): void {
    if (!this.#levels.includes("TENSORS")) return
    for (const { name, datatype, shape, bytes } of tensors) {
      if (this.#tensors.length >= maxTensors || this.#room <= 0) return
      const text = data(datatype, shape, bytes, this.#room)
      this.#room -= text.length
      const tensor = { name, data: text, shape: shape.join(), dtype: datatype }
      this.#tensors.push(JSON.stringify({ id: this.#id, activity, tensor }))
    }
  }

  #write(): void {
    if (this.#written) return
    this.#written = true
    this.#done(this.#elements().join(",\n"))
  }

  #elements(): ReadonlyArray<string> {
    const { modelName, id } = this.#wire
    const named = { id: this.#id, model_name: modelName, model_version: Number(this.#version) }
    const head = this.#parentId === undefined ? named : { ...named, parent_id: this.#parentId }
    const points = this.#points.toSorted(([, a], [, b]) => a - b).map(([name, ns]) => ({ name, ns: Math.round(ns) }))
    return [
      JSON.stringify(id === "" ? head : { ...head, request_id: id }),
      ...(this.#levels.includes("TIMESTAMPS") ? [JSON.stringify({ id: this.#id, timestamps: points })] : []),
      ...this.#tensors,
      ...this.#children.flatMap((child) => child.#elements()),
    ]
  }
}

const data = (datatype: string, shape: ReadonlyArray<number>, bytes: Uint8Array, room: number): string => {
  if (!isDataType(datatype)) return ""
  const elements = new TypedTensor(datatype, shape, bytes).data
  let text = ""
  for (const [index, element] of elements.entries()) {
    if (text.length >= room) break
    if (index === maxElements) return `${text},…`
    const printed = element instanceof Uint8Array ? decoder.decode(element.subarray(0, room)) : String(element)
    text += index === 0 ? printed : `,${printed}`
  }
  return text.length < room ? text : `${text.slice(0, room)},…`
}

const decoder = new TextDecoder()

/**
 * The trace of one request: its timestamps and, at level TENSORS, its tensors, with the traces of requests that were
 * made to answer it. TraceElements.ts writes it to a file, TraceSpans.ts converts it for OpenTelemetry.
 */
import { isDataType } from "@nereid/core/internal/tensor/DataType"
import type { ChildRequest, ChildTrace, NamedTensor, Trace, TracePoint } from "@nereid/core/internal/request/Request"
import { TypedTensor } from "@nereid/core/internal/tensor/TypedTensor"
import type { WireRequest, WireResponse, WireTensor } from "@nereid/core/internal/wire/WireRequest"
import type { TraceLevel } from "./TraceSettings.ts"

/** Moments at the ports: when the request began and had come, when its answer began to go and had gone. */
const portPoints = {
  HTTP: ["HTTP_RECV_START", "HTTP_RECV_END", "HTTP_SEND_START", "HTTP_SEND_END"],
  GRPC: ["GRPC_WAITREAD_START", "GRPC_WAITREAD_END", "GRPC_SEND_START", "GRPC_SEND_END"],
} as const

export type Port = keyof typeof portPoints

/** A moment by its name, in nanoseconds of the monotonic clock. */
export type Point = readonly [name: string, nanos: number]

/** A tensor in the text of the trace file. */
export interface PrintedTensor {
  readonly activity: "TENSOR_QUEUE_INPUT" | "TENSOR_BACKEND_OUTPUT"
  readonly tensor: { readonly name: string; readonly data: string; readonly shape: string; readonly dtype: string }
}

/** Elements of a tensor, and tensors of a request, that are printed; a stream may have responses without end. */
const maxElements = 10_000
const maxTensors = 1_000

/** Requests in the trace of one request from a client; a decoupled model may need any number. */
const maxChildren = 1_000

/** Maximum characters of all tensors of a trace, which are kept until the response. */
const maxTextBytes = 4 * 2 ** 20

/** Shared by the trace of one request from a client and all traces below it. */
interface SharedTrace {
  readonly nextId: () => number
  readonly now: () => number
  readonly levels: ReadonlyArray<TraceLevel>
  /** Children that may still be added, and characters that may still be printed. */
  children: number
  room: number
}

export interface RequestTraceOptions extends Pick<SharedTrace, "nextId" | "now" | "levels"> {
  readonly wire: WireRequest
  /** Version of the model. */
  readonly version: string
  /** Takes the trace, once. */
  readonly done: (trace: RequestTrace) => void
}

export class RequestTrace implements ChildTrace {
  readonly id: number
  /** Id of the trace of the request that caused this one; undefined for a request from a client. */
  readonly parentId: number | undefined
  /** The model and the id of the request. */
  readonly request: ChildRequest
  /** Moments in the server, at the port, and those that the model's code names. */
  readonly points: Array<Point> = []
  readonly portPoints: Array<Point> = []
  readonly activities: Array<Point> = []
  readonly tensors: Array<PrintedTensor> = []
  readonly children: Array<RequestTrace> = []
  /** Takes the moments in the server too; undefined if the caller does not ask for its times. */
  timing: Trace | undefined
  readonly #shared: SharedTrace
  readonly #done: (trace: RequestTrace) => void
  #inputs: ReadonlyArray<WireTensor>
  #endedAt: number | undefined
  #port: Port | undefined
  #isDone = false

  constructor(
    shared: SharedTrace,
    request: ChildRequest,
    parentId: number | undefined,
    inputs: ReadonlyArray<WireTensor>,
    done: (trace: RequestTrace) => void,
  ) {
    this.id = shared.nextId()
    this.parentId = parentId
    this.request = request
    this.#shared = shared
    this.#inputs = inputs
    this.#done = done
  }

  /** The trace of a request from a client. */
  static make({ wire, version, done, ...shared }: RequestTraceOptions): RequestTrace {
    const request = { model: wire.modelName, version, id: wire.id }
    return new RequestTrace(
      { ...shared, children: maxChildren, room: maxTextBytes },
      request,
      undefined,
      wire.inputs,
      done,
    )
  }

  get levels(): ReadonlyArray<TraceLevel> {
    return this.#shared.levels
  }

  batch(rows: number): void {
    this.timing?.batch?.(rows)
  }

  at(point: TracePoint, nanos: number): void {
    this.timing?.at(point, nanos)
    if (this.#endedAt !== undefined) return
    // A refused request has no response of a model.
    if (point === "INFER_RESPONSE_COMPLETE" && !this.points.some(([name]) => name === "QUEUE_START")) return
    this.points.push([point, nanos])
    if (point !== "REQUEST_END") return
    this.#endedAt = nanos
    if (this.#port === undefined) this.#end()
  }

  activity(name: string, nanos: number): void {
    if (this.#endedAt === undefined) this.activities.push([name, nanos])
  }

  /** Complete with this one. */
  child(request: ChildRequest): RequestTrace {
    const trace = new RequestTrace(this.#shared, request, this.id, [], () => {})
    if (this.#shared.children > 0) {
      this.#shared.children -= 1
      this.children.push(trace)
    }
    return trace
  }

  begin(inputs: ReadonlyArray<NamedTensor>): void {
    this.at("REQUEST_START", this.#shared.now())
    this.#print("TENSOR_QUEUE_INPUT", inputs.map(printable))
  }

  end(): void {
    this.at("REQUEST_END", this.#shared.now())
  }

  /** Records the arrival of the request on this port. The trace is complete after its response. */
  received(port: Port, startedAt: number, nanos: number): void {
    this.#port = port
    const [start, end] = portPoints[port]
    this.portPoints.push([start, startedAt], [end, nanos])
  }

  /** Records that the response was sent, or that the connection closed. */
  sent(nanos: number): void {
    if (this.#port === undefined) return
    this.at("REQUEST_END", nanos)
    const [, , start, end] = portPoints[this.#port]
    this.portPoints.push([start, this.#endedAt ?? nanos], [end, nanos])
    this.#end()
  }

  /** A response that it has got; a decoupled model gives any number. */
  responded(outputs: ReadonlyArray<NamedTensor>): void {
    this.#print("TENSOR_BACKEND_OUTPUT", outputs.map(printable))
  }

  /** The same on the wire. */
  respondedOnWire({ outputs }: WireResponse): void {
    // Only now are the inputs known to be what they say.
    const inputs = this.#inputs
    this.#inputs = []
    this.#print("TENSOR_QUEUE_INPUT", inputs)
    this.#print("TENSOR_BACKEND_OUTPUT", outputs)
  }

  #print(activity: PrintedTensor["activity"], tensors: ReadonlyArray<WireTensor>): void {
    const shared = this.#shared
    if (!shared.levels.includes("TENSORS")) return
    for (const { name, datatype, shape, bytes } of tensors) {
      if (this.tensors.length >= maxTensors || shared.room <= 0) return
      const text = data(datatype, shape, bytes, shared.room)
      shared.room -= text.length
      this.tensors.push({ activity, tensor: { name, data: text, shape: shape.join(), dtype: datatype } })
    }
  }

  #end(): void {
    if (this.#isDone) return
    this.#isDone = true
    this.#done(this)
  }
}

const printable = ({ name, tensor: { datatype, shape, bytes } }: NamedTensor): WireTensor => ({
  name,
  datatype,
  shape,
  bytes,
})

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

/**
 * A trace as spans of OpenTelemetry, with the names, attributes, events and parents of Triton's:
 *
 *   caller's span ─► InferRequest ─► model ─┬─ compute ─── custom activities: NAME_START … NAME_END
 *                                           └─ model of a call ─┬─ compute
 *                                                               └─ …
 */
import { randomBytes } from "node:crypto"
import type { TraceData } from "effect/observability/OtlpTracer"
import type { Point, RequestTrace } from "./RequestTrace.ts"
import { byTime } from "./TraceElements.ts"

export type OtlpSpan = TraceData["resourceSpans"][number]["scopeSpans"][number]["spans"][number]

/** The span of the caller. */
export interface ParentSpan {
  readonly traceId: string
  readonly spanId: string
}

/** Characters of a name from a client. */
const maxText = 1024

/** Moments of the root span that the server records between those of the port. */
const rootPoints: ReadonlySet<string> = new Set(["INFER_RESPONSE_COMPLETE"])

const modelPoints: ReadonlySet<string> = new Set(["REQUEST_START", "QUEUE_START", "REQUEST_END"])

/** `epoch` is the time of the epoch at the zero of the traces' clock, in nanoseconds. */
export const make = (trace: RequestTrace, parent: ParentSpan | undefined, epoch: bigint): ReadonlyArray<OtlpSpan> => {
  const spans: Array<OtlpSpan> = []
  const source = { traceId: parent?.traceId ?? randomId(16), epoch, spans }
  const points = trace.points.filter(([name]) => rootPoints.has(name))
  const [first, last] = extent([...trace.portPoints, ...trace.points])
  const root = add(source, {
    name: "InferRequest",
    parentId: parent?.spanId,
    from: first,
    to: last,
    points: [...trace.portPoints.slice(0, 2), ...points, ...trace.portPoints.slice(2)],
  })
  addModel(source, trace, root)
  return spans
}

interface SpanSource {
  readonly traceId: string
  readonly epoch: bigint
  readonly spans: Array<OtlpSpan>
}

interface SpanParts {
  readonly name: string
  readonly parentId: string | undefined
  readonly from: number
  readonly to: number
  readonly points: ReadonlyArray<Point>
  readonly attributes?: OtlpSpan["attributes"]
}

/** Adds the span of a request to a model, and those of its computation and its calls. */
const addModel = (source: SpanSource, trace: RequestTrace, parentId: string): void => {
  const { id, request, points, activities, children } = trace
  const [from, to] = extent(points)
  const compute = points.filter(([name]) => name.startsWith("COMPUTE_"))
  // The version of a model may be any text.
  const version = Number(request.version)
  const spanId = randomId(8)
  if (compute.length > 0) {
    const [begun, ended] = extent(compute)
    const computeId = randomId(8)
    const activityEvents = addActivities(source, activities, computeId, ended)
    add(
      source,
      { name: "compute", parentId: spanId, from: begun, to: ended, points: [...compute, ...activityEvents] },
      computeId,
    )
  }
  const own = compute.length > 0 ? [] : addActivities(source, activities, spanId, to)
  const attributes = [
    text("triton.model_name", request.model),
    Number.isSafeInteger(version)
      ? integer("triton.model_version", version)
      : text("triton.model_version", request.version),
    integer("triton.trace_id", id),
    integer("triton.trace_parent_id", trace.parentId ?? 0),
    ...(request.id === "" ? [] : [text("triton.request_id", request.id)]),
  ]
  const events = [...points.filter(([name]) => modelPoints.has(name)), ...own]
  add(source, { name: request.model, parentId, from, to, points: events, attributes }, spanId)
  for (const child of children) addModel(source, child, spanId)
}

/** Adds a span for each pair of activities that encloses one; returns those outside of all pairs. */
const addActivities = (
  source: SpanSource,
  activities: ReadonlyArray<Point>,
  parentId: string,
  endedAt: number,
): ReadonlyArray<Point> => {
  const outside: Array<Point> = []
  const open: Array<{ readonly name: string; readonly spanId: string; readonly points: Array<Point> }> = []
  const close = (to: number) => {
    const closed = open.pop()
    if (closed === undefined) return
    const { name, spanId, points } = closed
    const from = points[0]?.[1] ?? to
    add(source, { name, parentId: open.at(-1)?.spanId ?? parentId, from, to, points }, spanId)
  }
  for (const point of activities.toSorted(byTime)) {
    const [activity, nanos] = point
    const [, name = "", side] = /^(.+)_(START|END)$/.exec(activity) ?? []
    if (side === "START") open.push({ name, spanId: randomId(8), points: [point] })
    else {
      const { points = outside } = open.at(-1) ?? {}
      points.push(point)
      if (side === "END" && open.at(-1)?.name === name) close(nanos)
    }
  }
  while (open.length > 0) close(endedAt)
  return outside
}

const add = ({ traceId, epoch, spans }: SpanSource, parts: SpanParts, spanId = randomId(8)): string => {
  const { name, parentId, from, to, points, attributes = [] } = parts
  const time = (nanos: number) => String(epoch + BigInt(Math.round(nanos)))
  spans.push({
    traceId,
    spanId,
    parentSpanId: parentId,
    name: name.slice(0, maxText),
    kind: server,
    startTimeUnixNano: time(from),
    endTimeUnixNano: time(to),
    attributes,
    droppedAttributesCount: 0,
    events: points.toSorted(byTime).map(([name, nanos]) => ({
      name,
      timeUnixNano: time(nanos),
      attributes: [],
      droppedAttributesCount: 0,
    })),
    droppedEventsCount: 0,
    status: { code: 0 },
    links: [],
    droppedLinksCount: 0,
  })
  return spanId
}

/** SPAN_KIND_SERVER */
const server = 2

const extent = (points: ReadonlyArray<Point>): readonly [first: number, last: number] => {
  let first = Infinity
  let last = -Infinity
  for (const [, nanos] of points) {
    first = Math.min(first, nanos)
    last = Math.max(last, nanos)
  }
  return first <= last ? [first, last] : [0, 0]
}

const text = (key: string, value: string) => ({ key, value: { stringValue: value.slice(0, maxText) } })

const integer = (key: string, value: number) => ({ key, value: { intValue: value } })

const randomId = (bytes: number): string => randomBytes(bytes).toString("hex")

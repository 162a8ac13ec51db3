/**
 * A trace as elements of one JSON array, in Triton's format:
 * https://github.com/triton-inference-server/server/blob/main/docs/user_guide/trace.md
 */
import type { Point, RequestTrace } from "./RequestTrace.ts"

/** The elements of a trace and of its children, with commas between them. */
export const text = (trace: RequestTrace): string => elements(trace).join(",\n")

const elements = (trace: RequestTrace): ReadonlyArray<string> => {
  const { id, parentId, request, points, portPoints, activities, tensors, children, levels } = trace
  const named = { id, model_name: request.model, model_version: Number(request.version) }
  const head = parentId === undefined ? named : { ...named, parent_id: parentId }
  const [received, sent] = [portPoints.slice(0, 2), portPoints.slice(2)]
  const timestamps = [...received, ...points, ...activities, ...sent].toSorted(byTime).map(timestamp)
  return [
    JSON.stringify(request.id === "" ? head : { ...head, request_id: request.id }),
    ...(levels.includes("TIMESTAMPS") ? [JSON.stringify({ id, timestamps })] : []),
    ...tensors.map((tensor) => JSON.stringify({ id, ...tensor })),
    ...children.flatMap(elements),
  ]
}

export const byTime = ([, one]: Point, [, other]: Point): number => one - other

const timestamp = ([name, nanos]: Point) => ({ name, ns: Math.round(nanos) })

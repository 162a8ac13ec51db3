/** The lanes that a model has by its strategy: rows of direct batches, or dynamic batches of the oldest requests. */
import type { Instance } from "../instance/Instance.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import type { Request } from "../request/Request.ts"
import type { Queue } from "../scheduler/Queue.ts"
import type { QueuedRequest } from "../scheduler/QueuedRequest.ts"
import { DirectLane } from "./DirectLane.ts"
import type { Lane } from "./Lane.ts"
import { OldestLane } from "./OldestLane.ts"
import * as StateKey from "./StateKey.ts"

export interface LaneStrategyOptions {
  readonly sequencing: Sequencing
  /** Requests share a batch only where this agrees. */
  readonly groupKey: (request: Request) => string
  /** A row of a batch that has no request, alike in shapes to this request. */
  readonly emptyRow: (like: Request) => Request
  /** Makes the queue of the requests that may be executed now. */
  readonly makeQueue: () => Queue
}

/** Returns a function that makes the lane of an instance, or the one of all instances for undefined. */
export const make = (
  { sequencing, groupKey, emptyRow, makeQueue }: LaneStrategyOptions,
  onIssued: (queued: QueuedRequest) => void,
): ((instance: Instance | undefined) => Lane) => {
  const { strategy } = sequencing
  const keyOfRequest = StateKey.make(sequencing, groupKey)
  const keyOf = ({ request }: QueuedRequest) => keyOfRequest(request)
  return (instance) =>
    strategy._tag === "direct" && instance !== undefined
      ? new DirectLane(instance, { ...strategy, keyOf, emptyRow, onIssued })
      : new OldestLane(instance, { slots: strategy.slots, queue: makeQueue(), keyOf, onIssued })
}

/** The parts that only a running model with sequences has: its queue, and its stages before the scheduler. */
import { Effect } from "effect"
import * as RequestKey from "../cache/RequestKey.ts"
import type { Sequencing } from "../model/Sequencing.ts"
import type { SequenceId } from "../request/SequencePosition.ts"
import { AlarmClock } from "../scheduler/AlarmClock.ts"
import type { QueueHooks } from "../scheduler/Scheduler.ts"
import type { Stage } from "../scheduler/SubmitPipeline.ts"
import * as EmptyRow from "../sequence/EmptyRow.ts"
import { NumberedRequests, numberLimits } from "../sequence/NumberedRequests.ts"
import { SequenceHistory } from "../sequence/SequenceHistory.ts"
import { SequenceQueue, type SequenceQueueOptions } from "../sequence/SequenceQueue.ts"
import * as SessionStage from "./SessionStage.ts"

export interface LocalSequencesOptions extends Pick<
  SequenceQueueOptions,
  "model" | "sequencing" | "groupKey" | "maxQueueSize" | "batches"
> {
  readonly version: string
}

export interface LocalSequences {
  /** Makes the queue of the scheduler. Called once. */
  readonly makeQueue: (hooks: QueueHooks) => SequenceQueue
  /** Ends sequences for callers that leave. `changed` is called after the queue has changed. */
  readonly sessions: (changed: () => void) => Stage
  /** Orders and repeats numbered requests. */
  readonly numbers: Stage
  /** Refuses the numbered requests that wait. Before the scheduler stops. */
  readonly stop: Effect.Effect<void>
}

export const make = Effect.fnUntraced(function* ({ version, ...options }: LocalSequencesOptions) {
  const { model, sequencing } = options
  const ended = (yield* SequenceHistory).of(model, version)
  const isLost = (id: SequenceId) => (ended.get(id)?.reason ?? "ended") !== "ended"
  const numbered = new NumberedRequests(
    {
      model,
      ...numberLimits,
      maxWait: maxWaitOf(sequencing),
      keyOf: RequestKey.make({ readsRequest: false }),
      isLost,
    },
    yield* AlarmClock.make,
  )
  let queue: SequenceQueue | undefined
  return {
    makeQueue: ({ instances, refuse, makeDefault, warn }) =>
      (queue = new SequenceQueue({
        ...options,
        ended,
        instances,
        emptyRow: EmptyRow.make,
        makeQueue: makeDefault,
        refuse,
        warn,
        onOver: (id) => numbered.over(id),
      })),
    sessions: (changed) => SessionStage.make((id) => queue?.close(id), changed),
    numbers: (next) => numbered.before(next),
    stop: Effect.sync(() => numbered.stop()),
  } satisfies LocalSequences
})

/** A request waits for an earlier one as long as its sequence may be idle. In milliseconds. */
const maxWaitOf = ({ maxIdle }: Sequencing): number => maxIdle / 1e6

/** A scheduler of sequences whose instances record their batches and block until the test releases them. */
import { Cause, Effect, Exit, Fiber } from "effect"
import { sequenceDefaults, type Sequencing } from "../model/Sequencing.ts"
import type { Parameters, Request } from "../request/Request.ts"
import { type HarnessOptions, harness } from "../scheduler/Scheduler.fixture.ts"
import * as EmptyRow from "./EmptyRow.ts"
import { EndedSequences } from "./EndedSequences.ts"
import { SequenceQueue } from "./SequenceQueue.ts"

export const sequencing = (overrides: Partial<Sequencing> = {}): Sequencing => ({
  strategy: { _tag: "direct", slots: 4, maxQueueDelay: 0, minSlotUtilization: 0 },
  maxIdle: 1e9,
  maxIdleLimit: 1e9,
  isIterative: false,
  controls: [],
  states: [],
  ...sequenceDefaults,
  ...overrides,
})

type Flags = "" | "S" | "E" | "SE"

/**
 * `send(id, flags)` sends the next request of a sequence, whose name is the id and its number. `batches()` prints the
 * batches in the form `a1,-,b1@0`.
 */
export const sequences = Effect.fnUntraced(function* (
  { instanceCount = 1, ...overrides }: Partial<Sequencing> & { readonly instanceCount?: number } = {},
  options: HarnessOptions = {},
) {
  const warnings: Array<string> = []
  const made: { queue?: SequenceQueue } = {}
  const of = sequencing(overrides)
  const base = yield* harness({
    instanceCount,
    makeQueue: (hooks) =>
      (made.queue = new SequenceQueue({
        model: "m",
        sequencing: of,
        instances: hooks.instances,
        maxQueueSize: 1000,
        batches: true,
        ended: new EndedSequences(100),
        groupKey: options.groupKey ?? (() => ""),
        emptyRow: EmptyRow.make,
        makeQueue: hooks.makeDefault,
        refuse: hooks.refuse,
        warn: (message) => warnings.push(message),
      })),
    ...options,
  })
  const counts = new Map<string, number>()
  const send = (id: string, flags: Flags = "", more: { parameters?: Parameters; request?: Partial<Request> } = {}) => {
    const count = (counts.get(id) ?? 0) + 1
    counts.set(id, count)
    const parameters = {
      sequence_id: id,
      sequence_start: flags.includes("S"),
      sequence_end: flags.includes("E"),
      ...more.parameters,
    }
    return base.send(1, { id: `${id}${count}`, parameters, ...more.request })
  }
  const batches = () =>
    base.runs.map(
      ({ batch, instance }) =>
        `${batch.requests.map(({ id, sequence }) => (sequence?.isReady === true ? id : "-")).join()}@${instance.slice(-1)}`,
    )
  /** Ends all batches that execute, until none is left. */
  const drain = Effect.gen(function* () {
    yield* base.settle
    for (let index = 0; index < base.runs.length; index++) yield* base.complete(index)
  })
  return { ...base, queue: made.queue, send, batches, drain, warnings }
})

/** The message of a request's failure. */
export const failureOf = (fiber: Fiber.Fiber<unknown, { readonly message: string }>) =>
  Effect.map(Fiber.await(fiber), (exit) =>
    Exit.isSuccess(exit)
      ? "no failure"
      : exit.cause.reasons.map((reason) => (Cause.isFailReason(reason) ? reason.error.message : reason._tag)).join(),
  )

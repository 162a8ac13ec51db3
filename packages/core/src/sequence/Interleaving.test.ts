/**
 * Any interleaving of sequences gives each the result of running alone, under cancellation, expiry, changes of the
 * instances and reloads of the model. Random programs on the test clock.
 */
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Result, Scope } from "effect"
import { constVoid } from "effect/Function"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as Batch from "../batch/Batch.ts"
import type { InferenceError } from "../error/InferenceError.ts"
import type { Instance, Settle } from "../instance/Instance.ts"
import { ModelStatistics } from "../metrics/ModelStatistics.ts"
import type { SequenceStrategy } from "../model/Sequencing.ts"
import { type Cancel, noParameters, type Request, type Response } from "../request/Request.ts"
import * as Scheduler from "../scheduler/Scheduler.ts"
import * as EmptyRow from "./EmptyRow.ts"
import { sequencing } from "./Sequences.fixture.ts"
import { EndedSequences } from "./EndedSequences.ts"
import { SequenceQueue } from "./SequenceQueue.ts"

const strategies: ReadonlyArray<SequenceStrategy> = [
  { _tag: "direct", slots: 3, maxQueueDelay: 0, minSlotUtilization: 0 },
  { _tag: "direct", slots: 2, maxQueueDelay: 5e6, minSlotUtilization: 1 },
  { _tag: "oldest", slots: 5 },
  { _tag: "oldest", slots: 1 },
  { _tag: "free", slots: 6 },
]

/** The steps of a program. Numbers select among what there is. */
type Step =
  | { readonly _tag: "send"; readonly sequence: number }
  | { readonly _tag: "complete"; readonly batch: number }
  | { readonly _tag: "cancel"; readonly request: number }
  | { readonly _tag: "wait"; readonly millis: number }
  | { readonly _tag: "instances"; readonly count: number }
  /** The next version takes all further requests, and this one is stopped: at once, or when it has drained. */
  | { readonly _tag: "reload"; readonly drains: boolean }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ _tag: fc.constant("send" as const), sequence: fc.nat(199) }) },
  { weight: 6, arbitrary: fc.record({ _tag: fc.constant("complete" as const), batch: fc.nat(20) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("cancel" as const), request: fc.nat(1000) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("wait" as const), millis: fc.nat(400) }) },
  {
    weight: 1,
    arbitrary: fc.record({ _tag: fc.constant("instances" as const), count: fc.integer({ min: 1, max: 4 }) }),
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("reload" as const), drains: fc.boolean() }) },
)

const program = fc.record({
  strategy: fc.constantFrom(...strategies),
  sequences: fc.constantFrom(1, 3, 20, 200),
  length: fc.integer({ min: 1, max: 6 }),
  steps: fc.array(step, { maxLength: 300, size: "max" }),
})

type Program = typeof program extends fc.Arbitrary<infer P> ? P : never

/** One request of a sequence; each START begins a new run of its id. */
interface Sent {
  readonly run: string
  readonly index: number
  cancel: Cancel
  outcome: Result.Result<Response, InferenceError> | undefined
  isCancelled: boolean
  /** Whether a reload has ended its sequence before. */
  readonly isReloaded: boolean
}

const noOutputs: Response = { outputs: [], parameters: noParameters }

const execute = Effect.fnUntraced(function* ({ strategy, sequences, length, steps }: Program) {
  /** By request: the requests of its run that its state has seen, in their order. */
  const seen = new Map<string, ReadonlyArray<string>>()
  const executing: Array<{ readonly batch: Batch.Batch; readonly settle: Settle }> = []
  const instance = (index: number): Instance => ({
    name: `m_${index}`,
    concurrency: 1,
    status: () => "available",
    onStatusChange: () => {},
    execute: (batch, settle) => {
      executing.push({ batch, settle })
      return () => {}
    },
  })
  const complete = ({ batch, settle }: (typeof executing)[number]) => {
    for (const { id, sequence } of batch.requests) {
      if (sequence === undefined || !sequence.isReady) continue
      const before: ReadonlyArray<string> =
        sequence.isStart || !Array.isArray(sequence.state.value) ? [] : sequence.state.value
      sequence.state.value = [...before, id]
      seen.set(id, [...before, id])
    }
    const outcomes = batch.requests.map(() => Result.succeed(noOutputs))
    settle(Exit.succeed({ outcomes, inputDuration: 0, outputDuration: 0 }))
  }
  const ended = new EndedSequences(1000)
  const queues: Array<SequenceQueue> = []
  const load = Effect.fnUntraced(function* () {
    const instances = Array.from({ length: 4 }, (_, index) => instance(index))
    const scope = yield* Scope.fork(yield* Scope.Scope)
    const scheduler = yield* Scope.provide(makeScheduler(instances.slice(0, 2)), scope)
    return { instances, scope, scheduler }
  })
  const makeScheduler = (instances: ReadonlyArray<Instance>) =>
    Scheduler.make({
      model: "m",
      instances,
      statistics: new ModelStatistics(),
      groupKey: () => "",
      batchOf: Batch.make,
      bisects: false,
      maxBatchSize: 3,
      preferredBatchSizes: [],
      maxQueueDelay: 0,
      maxQueueSize: 10_000,
      groupOrder: "independent",
      makeQueue: ({ instances, refuse, makeDefault, warn }) => {
        const queue = new SequenceQueue({
          model: "m",
          sequencing: sequencing({ strategy, maxIdle: 1e9 }),
          instances,
          maxQueueSize: 10_000,
          batches: true,
          ended,
          groupKey: () => "",
          emptyRow: EmptyRow.make,
          makeQueue: makeDefault,
          refuse,
          warn,
        })
        queues.push(queue)
        return queue
      },
    })
  let version = yield* load()
  /** Ids of sequences that a reload has ended, until their next START. */
  const reloaded = new Set<number>()
  const reload = Effect.fnUntraced(function* (drains: boolean) {
    const { scheduler, scope } = version
    for (const sequence of progress.keys()) {
      const parameters = { sequence_id: BigInt(sequence + 1) }
      const request: Request = { id: "", inputs: [], rows: 1, parameters, deadline: undefined }
      if (queues.at(-1)?.refusal(request) === undefined) reloaded.add(sequence)
    }
    version = yield* load()
    // As in Retirement.ts.
    scheduler.retire()
    const stop = Scope.close(scope, Exit.void)
    yield* Effect.forkChild(drains ? Effect.andThen(scheduler.drained, stop) : stop, { startImmediately: true })
  })
  const sent: Array<Sent> = []
  const progress = new Map<number, { readonly run: number; readonly next: number }>()
  const send = (sequence: number) => {
    const { run, next } = progress.get(sequence) ?? { run: 0, next: 0 }
    const name = `${sequence}.${run}`
    const request: Request = {
      id: `${name}.${next}`,
      inputs: [],
      rows: 1,
      parameters: {
        sequence_id: BigInt(sequence + 1),
        sequence_start: next === 0,
        sequence_end: next === length - 1,
      },
      deadline: undefined,
    }
    progress.set(sequence, next === length - 1 ? { run: run + 1, next: 0 } : { run, next: next + 1 })
    if (next === 0) reloaded.delete(sequence)
    const isReloaded = reloaded.has(sequence)
    const entry: Sent = {
      run: name,
      index: next,
      cancel: constVoid,
      outcome: undefined,
      isCancelled: false,
      isReloaded,
    }
    entry.cancel = version.scheduler.submit(request, (outcome) => {
      expect(entry.outcome).toBeUndefined()
      entry.outcome = outcome
    })
    sent.push(entry)
  }
  for (const each of steps) {
    switch (each._tag) {
      case "send":
        send(each.sequence % sequences)
        break
      case "complete": {
        const [batch] = executing.splice(each.batch % Math.max(1, executing.length), 1)
        if (batch !== undefined) complete(batch)
        break
      }
      case "cancel": {
        const entry = sent[each.request % Math.max(1, sent.length)]
        if (entry === undefined || entry.outcome !== undefined) break
        entry.isCancelled = true
        entry.cancel()
        break
      }
      case "wait":
        yield* TestClock.adjust(each.millis)
        break
      case "instances":
        yield* Effect.forkChild(version.scheduler.replaceInstances(version.instances.slice(4 - each.count)))
        break
      case "reload":
        yield* reload(each.drains)
        break
    }
    if (each._tag !== "send") yield* TestClock.adjust(0)
  }
  // Everything ends: sequences without END expire, and free their slots.
  for (let round = 0; round < 3000 && (executing.length > 0 || sent.some(isOpen)); round++) {
    for (const batch of executing.splice(0)) complete(batch)
    yield* TestClock.adjust(executing.length === 0 ? 300 : 0)
  }
  return { sent, seen, queues }
})

const isOpen = ({ outcome, isCancelled }: Sent) => outcome === undefined && !isCancelled

it.effect(
  "any interleaving of sequences gives each the result of running alone",
  () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(program, async (random) => {
          const result = await Effect.runPromise(Effect.scoped(execute(random)).pipe(Effect.provide(TestClock.layer())))
          const { sent, seen, queues } = result
          expect(sent.filter(isOpen)).toEqual([])
          expect(queues.map(({ size }) => size)).toEqual(queues.map(() => 0))
          const disturbed = new Set(sent.flatMap(({ run, isCancelled }) => (isCancelled ? [run] : [])))
          for (const { run, index, outcome, isReloaded } of sent) {
            if (isReloaded) {
              expect(outcome).toMatchObject({ failure: { _tag: "SequenceNotFound", reason: "reloaded" } })
              continue
            }
            if (outcome === undefined || Result.isFailure(outcome)) continue
            const own = `${run}.${index}`
            const states = seen.get(own) ?? []
            expect(states.at(-1)).toBe(own)
            const alone = Array.from({ length: index + 1 }, (_, before) => `${run}.${before}`)
            // A cancelled request may be missing, and nothing else.
            if (disturbed.has(run)) expect(alone).toEqual(expect.arrayContaining([...states]))
            else expect(states).toEqual(alone)
          }
        }),
        { numRuns: 200 },
      ),
    ),
  60_000,
)

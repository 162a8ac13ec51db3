/** Slots of sequences over each transport: control values, empty rows, times, and ends that nobody sends. */
import { afterEach, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import {
  blockedExecutions as executions,
  blockingBetween,
  blockingSequences,
} from "../conformance/BlockedExecutions.ts"
import * as sequences from "../fixtures/sequences.ts"
import { type Flags, step } from "./Scenario.ts"
import { metric, overStream, type ObservedPorts, transports, transportsOf } from "./SequenceCalls.ts"
import { serve, serveFiles } from "./SequenceServer.ts"

afterEach(() => executions.reset())

const quickStop = { server: { drainTimeout: "10 millis" } } as const

const running = (...names: ReadonlyArray<string>) =>
  Effect.repeat(
    Effect.sync(() => String(executions.running)),
    { until: (all) => all === String(names) },
  )

const expired = (ports: ObservedPorts, model: string) =>
  Effect.repeat(metric(ports, "nereid_sequences_ended", `model="${model}",reason="expired"`), {
    until: (count) => count === 1,
  })

/** OUTPUT: empty rows of the batch, and 1000 for each that has a flag, an id or an input. */
const emptyRows = `
  import { ModelScript } from "@nereid/repository"
  import { Tensor } from "@nereid/core"
  export default ModelScript.define({
    execute: (requests) => {
      const empty = requests.filter(({ sequence }) => !sequence.isReady)
      const wrong = empty.filter(({ sequence: { isStart, isEnd, id }, inputs }) => isStart || isEnd || id !== 0n ||
        ["INPUT", "START", "READY", "END"].some((name) => inputs[name].data[0] !== 0) || inputs.CORRID.data[0] !== 0n)
      const count = empty.length + 1000 * wrong.length
      return requests.map(({ inputs: { INPUT }, sequence }) =>
        sequence.isReady ? { OUTPUT: Tensor.make("INT32", INPUT.shape, Int32Array.of(count)) } : {})
    },
  })`

for (const [transport, send] of transports(4)) {
  const call = (ports: ObservedPorts, model: string, ...args: Parameters<typeof step>) =>
    Effect.promise(async () => (await send(ports, model, [step(...args)]))[0])
  const fork = (ports: ObservedPorts, model: string, ...args: Parameters<typeof step>) =>
    Effect.forkChild(call(ports, model, ...args), { startImmediately: true })

  /** The answer of a request to `m`, whose execution ends as soon as it has begun. */
  const executed = Effect.fnUntraced(function* (ports: ObservedPorts, id: bigint, flags: Flags, value: number) {
    const answer = yield* fork(ports, "m", id, flags, value, 0)
    yield* running(`m ${id}`)
    executions.end()
    return yield* Fiber.join(answer)
  })

  // L1.1.flag-values@all
  it.live(`${transport}: a control has the values of its configuration`, () =>
    Effect.gen(function* () {
      const controls = sequences.startAndReady.replaceAll("[0, 1]", "[3, 5]")
      const files = { "m/config.pbtxt": sequences.config(controls), "m/1/model.onnx": sequences.flags(true) }
      const ports = yield* serveFiles(files, quickStop)
      // READY * (INPUT + START)
      expect(yield* call(ports, "m", 1n, "S", 1, 0)).toBe(5 * (1 + 5))
      expect(yield* call(ports, "m", 1n, "E", 1, 0)).toBe(5 * (1 + 3))
    }),
  )

  const [, sendHeld] = transportsOf({
    name: "",
    behaviour: "ids",
    maxBatchSize: 4,
    hold: [5, 0],
    steps: [],
    sizes: {},
  }).find(([name]) => name === transport) ?? [transport, send]

  // L1.1.flags.empty-row@all, L1.6.empty-row@all
  it.live(`${transport}: an empty row has zeros, no flag and no id`, () =>
    Effect.gen(function* () {
      const files = { "m/config.pbtxt": sequences.config(sequences.allControls), "m/1/model.ts": emptyRows }
      const ports = yield* serveFiles(files, { ...quickStop, hold: [5, 0] })
      const steps = [
        step(1n, "S", 7, 0),
        step(2n, "SE", 7, 0),
        step(3n, "S", 7, 0),
        step(1n, "E", 7, 1),
        step(3n, "E", 7, 1),
      ]
      const answers = yield* Effect.promise(() => sendHeld(ports, "m", steps))
      expect(answers).toEqual(steps.map(({ expected }) => expected))
    }),
  )

  for (const fields of ["direct {}", "oldest {}"]) {
    const blocked = (idle: number) =>
      serveFiles(
        {
          "m/config.pbtxt": sequences.config(fields, { idle, maxBatchSize: 1 }),
          "m/1/model.ts": blockingSequences("m"),
          "clock/config.pbtxt": sequences.config(`oldest {} ${sequences.startAndReady}`, { idle }),
          "clock/1/model.onnx": sequences.flags(true),
        },
        quickStop,
      )

    // L1.5.idle-clock@all, L1.5.idle-backlog@all
    it.live(`${transport}: an execution and the backlog are no idle time, ${fields}`, () =>
      Effect.gen(function* () {
        const ports = yield* blocked(1_000_000)
        const first = yield* fork(ports, "m", 1n, "S", 1, 0)
        yield* running("m 1")
        const second = yield* fork(ports, "m", 2n, "S", 2, 0)
        yield* Effect.repeat(metric(ports, "nereid_sequences_backlog", 'model="m"'), { until: (count) => count === 1 })
        // A sequence that began later has expired meanwhile.
        yield* call(ports, "clock", 9n, "S", 1, 0)
        yield* expired(ports, "clock")
        executions.end()
        expect(yield* Fiber.join(first)).toBe(1)
        expect(yield* executed(ports, 1n, "E", 3)).toBe(3)
        yield* running("m 2")
        executions.end()
        expect(yield* Fiber.join(second)).toBe(2)
        expect(yield* executed(ports, 2n, "E", 4)).toBe(4)
      }),
    )

    // L1.5.priority@all
    it.live(`${transport}: a priority has no effect, ${fields}`, () =>
      Effect.gen(function* () {
        const ports = yield* blocked(5_000_000)
        const first = yield* fork(ports, "m", 1n, "S", 1, 0)
        yield* running("m 1")
        const waiting: Array<Fiber.Fiber<unknown>> = []
        for (const [id, priority] of [
          [2n, 2n],
          [3n, 1n],
        ] as const) {
          waiting.push(yield* fork(ports, "m", id, "SE", Number(id), 0, { priority }))
          yield* Effect.repeat(metric(ports, "nereid_sequences_backlog", 'model="m"'), {
            until: (count) => count === waiting.length,
          })
        }
        executions.end()
        yield* Fiber.join(first)
        expect(yield* executed(ports, 1n, "E", 1)).toBe(1)
        for (const id of [2, 3]) {
          yield* running(`m ${id}`)
          executions.end()
          expect(yield* Fiber.join(waiting[id - 2]!)).toBe(id)
        }
      }),
    )

    // L1.5.timeout-slot@all
    it.live(`${transport}: a timeout has no effect in a slot, ${fields}`, () =>
      Effect.gen(function* () {
        const ports = yield* blocked(300_000)
        const first = yield* fork(ports, "m", 1n, "S", 1, 0)
        yield* running("m 1")
        const second = yield* fork(ports, "m", 1n, "E", 2, 0, { timeout: 1000n })
        yield* Effect.repeat(metric(ports, "nv_inference_pending_request_count", 'model="m"'), {
          until: (count) => count === 1,
        })
        yield* call(ports, "clock", 9n, "S", 1, 0)
        yield* expired(ports, "clock")
        executions.end()
        expect(yield* Fiber.join(first)).toBe(1)
        yield* running("m 1")
        executions.end()
        expect(yield* Fiber.join(second)).toBe(2)
      }),
    )
  }

  // L1.5.stop-idle@all
  it.live(`${transport}: a stop waits for the expiry of an open sequence`, () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const scenario = { name: "m", behaviour: "state", maxBatchSize: 4, idle: 300_000, steps: [], sizes: {} } as const
      const ports = yield* Scope.provide(serve(scenario), scope)
      const startedAt = performance.now()
      expect(yield* call(ports, "m", 7n, "S", 1, 0)).toBe(1)
      yield* Scope.close(scope, Exit.void)
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(300)
    }),
  )

  // L1.5.stop-timeout@all
  it.live(`${transport}: a stop waits for an open sequence at most for its time limit`, () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const anHour = 3_600_000_000
      const scenario = { name: "m", behaviour: "state", maxBatchSize: 4, idle: anHour, steps: [], sizes: {} } as const
      const ports = yield* Scope.provide(serve(scenario, quickStop), scope)
      expect(yield* call(ports, "m", 7n, "S", 1, 0)).toBe(1)
      yield* Scope.close(scope, Exit.void)
    }),
  )
}

const flagsOf: ReadonlyArray<Flags> = ["S", "E"]

for (const [strategy, label] of [
  // L1.5.decoupled-direct@stream
  ["direct {}", "the next batch follows the execution"],
  // L1.5.decoupled-oldest@stream
  ["oldest {}", "the next request of a sequence follows once the one before it is released"],
] as const) {
  it.live(`decoupled, ${strategy}: ${label}`, () =>
    Effect.gen(function* () {
      const config = sequences.config(strategy, {
        more: `
          model_transaction_policy { decoupled: true }
          input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
          output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }`,
      })
      const script = blockingBetween("m").replaceAll("X", "INPUT").replaceAll("Y:", "OUTPUT:")
      const ports = yield* serveFiles({ "m/config.pbtxt": config, "m/1/model.js": script }, quickStop)
      const answers = yield* Effect.forkChild(
        Effect.promise(() =>
          overStream(true)(
            ports,
            "m",
            flagsOf.map((flags, index) => step(1n, flags, index, 0)),
          ),
        ),
        { startImmediately: true },
      )
      yield* running("m")
      yield* Effect.repeat(metric(ports, "nv_inference_pending_request_count"), { until: (count) => count === 1 })
      expect(executions.begun).toEqual(["m"])
      executions.end()
      yield* running("m")
      executions.end()
      expect(yield* Fiber.join(answers)).toEqual([0, 0, 1, 1])
    }),
  )
}

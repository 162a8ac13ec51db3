/** Thresholds of the advice: what is not proven is not said. Advice.test.ts has each situation with a real model. */
import type { AdviceKind } from "@nereid/dashboard/internal/live/Advice"
import type { LiveModel, RunningDetails } from "@nereid/dashboard/internal/live/LiveModel"
import type { LiveStep, ModelStep, ProcessStep } from "@nereid/dashboard/internal/live/LiveStep"
import { describe, expect, test } from "vitest"
import * as Advisor from "./Advisor.ts"

const details: RunningDetails = {
  source: "code",
  origin: "code",
  threaded: false,
  decoupled: false,
  maxBatchSize: 8,
  maxQueueSize: 100,
  maxQueueDelay: 0,
  instances: 1,
  cache: false,
}

const idle: ProcessStep = {
  cpu: 0,
  memory: 0,
  heap: 0,
  buffers: 0,
  delayMax: 0,
  delayP99: 0,
  connections: 0,
  inFlight: 0,
  held: 0,
}

interface Situation {
  readonly running?: Partial<RunningDetails>
  readonly model?: Partial<ModelStep>
  readonly process?: Partial<ProcessStep>
  readonly steps?: number
}

const advise = ({ running = {}, model, process = {}, steps: count = 5 }: Situation) => {
  const models: ReadonlyArray<LiveModel> = [
    { name: "m", version: "1", state: "READY", reason: "", running: { ...details, ...running } },
  ]
  const steps = Array.from({ length: count }, (_, index): LiveStep => ({
    index,
    time: index * 1000,
    millis: 1000,
    process: { ...idle, ...process },
    models: model === undefined ? [] : [{ name: "m", version: "1", ...model }],
  }))
  return Advisor.advise({ steps, models, heldLimit: 1000 })
}

const kinds = (situation: Situation): ReadonlyArray<AdviceKind> => advise(situation).map(({ kind }) => kind)

/** Ten requests in a step, each of which waits 1 ms and computes 10. */
const calm: Partial<ModelStep> = { requests: 10, parts: [10_000, 0, 100_000, 0], batches: [1, 10], busy: 0.1 }

const crowded: Partial<ModelStep> = { ...calm, busy: 0.8, queue: 4 }

interface Threshold {
  readonly kind: AdviceKind
  readonly proven: Situation
  /** One figure less. */
  readonly unproven: Situation
}

const thresholds: ReadonlyArray<Threshold> = [
  {
    kind: "no-batching",
    proven: { running: { maxBatchSize: 0 }, model: crowded },
    unproven: { running: { maxBatchSize: 0 }, model: { ...crowded, queue: 3 } },
  },
  {
    kind: "no-batching",
    proven: { running: { maxBatchSize: 1 }, model: crowded },
    unproven: { running: { maxBatchSize: 1, decoupled: true }, model: crowded },
  },
  {
    kind: "full-batches",
    proven: { model: { ...crowded, batches: [7, 8, 8, 2] }, running: { maxBatchSize: 8 } },
    unproven: { model: { ...crowded, batches: [7, 9, 8, 1] }, running: { maxBatchSize: 8 } },
  },
  {
    kind: "small-batches",
    proven: { model: { ...crowded, batches: [2, 10] } },
    unproven: { model: { ...crowded, batches: [2, 10], busy: 0.79 } },
  },
  {
    kind: "saturated",
    proven: { model: { ...calm, busy: 0.8, parts: [110_000, 0, 100_000, 0] } },
    unproven: { model: { ...calm, busy: 0.8, parts: [100_000, 0, 100_000, 0] } },
  },
  {
    kind: "useless-delay",
    proven: { running: { maxQueueDelay: 2 }, model: calm },
    unproven: { running: { maxQueueDelay: 2.1 }, model: calm },
  },
  {
    kind: "useless-delay",
    proven: { running: { maxQueueDelay: 1 }, model: { ...calm, batches: [1, 9] } },
    unproven: { running: { maxQueueDelay: 1 }, model: { ...calm, batches: [1, 8] } },
  },
  {
    kind: "queue-full",
    proven: { model: { requests: 199, errors: { REJECTED: 1 }, refusals: { full: 1 } } },
    unproven: { model: { requests: 200, errors: { REJECTED: 1 }, refusals: { full: 1 } } },
  },
  {
    kind: "queue-timeouts",
    proven: { model: { requests: 199, errors: { REJECTED: 1 }, refusals: { timeout: 1 } } },
    unproven: { model: { requests: 199, errors: { REJECTED: 1 } } },
  },
  {
    kind: "deadlines",
    proven: { model: { requests: 199, errors: { REJECTED: 1 }, refusals: { deadline: 1 } } },
    unproven: { model: { requests: 199, errors: { CANCELED: 1 } } },
  },
  {
    kind: "failures",
    proven: { model: { requests: 199, errors: { BACKEND: 1 } } },
    unproven: { model: { requests: 200, errors: { BACKEND: 1 } } },
  },
  {
    kind: "idle-cache",
    proven: { running: { cache: true }, model: { hits: 1, misses: 20 } },
    unproven: { running: { cache: true }, model: { hits: 1, misses: 19 } },
  },
  {
    kind: "tensor-copies",
    proven: { model: { ...calm, parts: [0, 6000, 10_000, 5000] } },
    unproven: { model: { ...calm, parts: [0, 5000, 10_000, 5000] } },
  },
  {
    kind: "idle-instances",
    proven: { running: { instances: 4 }, model: { ...calm, busy: 2 }, steps: 20 },
    unproven: { running: { instances: 4 }, model: { ...calm, busy: 2.1 }, steps: 20 },
  },
  {
    kind: "idle-instances",
    proven: { running: { instances: 4 }, model: calm, steps: 20 },
    unproven: { running: { instances: 4 }, model: calm, steps: 19 },
  },
  { kind: "event-loop-late", proven: { process: { delayMax: 100 } }, unproven: { process: { delayMax: 99 } } },
  { kind: "held-memory", proven: { process: { held: 800 } }, unproven: { process: { held: 799 } } },
]

test.each(thresholds)("$kind, and not without its figures", ({ kind, proven, unproven }) => {
  expect(kinds(proven)).toEqual([kind])
  expect(kinds(unproven)).toEqual([])
})

test("a calm model, and one without requests, need no advice", () => {
  expect(kinds({ model: calm })).toEqual([])
  expect(kinds({})).toEqual([])
})

test("four seconds prove nothing", () => {
  expect(kinds({ process: { held: 1000 }, steps: 4 })).toEqual([])
})

test("problems come before improvements, and an id names its subject", () => {
  const situation = { running: { cache: true }, model: { ...crowded, misses: 100 }, process: { held: 900 } }
  expect(advise(situation).map(({ id }) => id)).toEqual(["held-memory", "small-batches:m:1", "idle-cache:m:1"])
})

describe("options have the name that they have where the model is configured", () => {
  const proven = thresholds.find(({ kind }) => kind === "full-batches")?.proven
  test("in code", () => {
    expect(advise({ ...proven })[0]?.option).toBe("maxBatchSize, instances")
  })
  test("in config.pbtxt", () => {
    const running = { origin: "repository" as const, source: "onnx" as const }
    expect(advise({ ...proven, running })[0]?.option).toBe("max_batch_size, instance_group.count")
  })
})

describe("a late event loop", () => {
  const process = { delayMax: 600 }
  const computing = (millis: number) => ({ requests: 10, parts: [0, 0, millis * 10_000, 0] as const, batches: [10, 1] })

  test("names a handler that computes long enough to explain it, and no other", () => {
    expect(advise({ process, model: computing(50) })[0]).toMatchObject({ model: "m", option: "Worker.layer" })
    const [other] = advise({ process, model: computing(49) })
    expect([other?.kind, other?.model, other?.option]).toEqual(["event-loop-late", undefined, "binary tensors"])
  })

  test("names only a handler that runs in the thread of the server", () => {
    const script = { source: "script", origin: "repository" } as const
    expect(advise({ process, model: computing(50), running: script })[0]?.option).toBe("parameters.worker_threads")
    const [threaded] = advise({ process, model: computing(50), running: { threaded: true } })
    expect([threaded?.model, threaded?.option]).toEqual([undefined, "binary tensors"])
  })
})

test("every guide that is recommended exists, with its heading", async () => {
  const { readFile } = await import("node:fs/promises")
  const guides = thresholds.flatMap(({ proven }) => advise(proven).map(({ guide }) => guide))
  expect(guides.length).toBeGreaterThan(10)
  for (const guide of guides) {
    const [file = "", heading] = guide.split("#")
    const text = await readFile(new URL(`../../../../../docs/guides/${file}`, import.meta.url), "utf8")
    const slugs = [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title.toLowerCase().replaceAll(" ", "-"))
    if (heading !== undefined) expect(slugs, guide).toContain(heading)
  }
})

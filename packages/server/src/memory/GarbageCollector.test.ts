import { execFileSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"

interface Collections {
  /** Number of full collections. */
  readonly full: number
  readonly young: number
}

/**
 * Counts the collections of a 30 MB heap while 700 MB of buffers are allocated and dropped. `each` reports every buffer
 * to GarbageCollector.ts, `one` a single large one.
 */
const collections = (tuned: boolean, scope: "each" | "one"): Collections => {
  const program = `
    import { constants, PerformanceObserver } from "node:perf_hooks"
    import * as GarbageCollector from ${JSON.stringify(import.meta.resolve("./GarbageCollector.ts"))}
    if (${tuned}) GarbageCollector.tune()
    if (${scope === "one"}) GarbageCollector.allocated(2 ** 30, true)
    const counts = { full: 0, young: 0 }
    const count = (entries) => {
      for (const { detail } of entries) {
        if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) counts.full += 1
        if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR) counts.young += 1
      }
    }
    const observer = new PerformanceObserver((list) => count(list.getEntries()))
    observer.observe({ type: "gc" })
    globalThis.heap = Array.from({ length: 360_000 }, (_, index) => ({ index, inner: { index } }))
    const kept = []
    for (let index = 0; index < 1200; index++) {
      if (${scope === "each"}) GarbageCollector.allocated(600 * 1024, true)
      kept[index % 16] = new ArrayBuffer(600 * 1024)
      if (index % 16 === 0) await new Promise(setImmediate)
    }
    count(observer.takeRecords())
    console.log(JSON.stringify(counts))
  `
  // With nothing beside it and nothing in small steps, V8 does the same each time, however busy the machine is.
  const flags = ["--single-threaded-gc", "--no-incremental-marking", "--input-type=module"]
  return JSON.parse(execFileSync(process.execPath, [...flags, "--eval", program], { encoding: "utf8" }))
}

describe.skipIf(Number.parseInt(process.versions.v8) < 14)("buffers that come and go", () => {
  it("are counted with the heap where they are huge, which is marked a few times", () => {
    const [tuned, plain] = [collections(true, "one"), collections(false, "one")]
    assert(tuned.full * 3 < plain.full, `${tuned.full} times, untuned ${plain.full}`)
  })

  it("are found soon where they die young, and the heap is marked a few times", () => {
    const [tuned, plain] = [collections(true, "each"), collections(false, "each")]
    assert(tuned.young > plain.young * 2, `${tuned.young} times, untuned ${plain.young}`)
    assert(tuned.full * 3 < plain.full, `marked ${tuned.full} times, untuned ${plain.full}`)
  })
})

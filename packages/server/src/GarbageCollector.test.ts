import { execFileSync } from "node:child_process"
import { assert, it } from "@effect/vitest"

/** How often a heap of 30 MB is marked while 700 MB of buffers come and go. */
const marked = (tuned: boolean): number => {
  const program = `
    import { constants, PerformanceObserver } from "node:perf_hooks"
    import * as GarbageCollector from ${JSON.stringify(import.meta.resolve("./GarbageCollector.ts"))}
    if (${tuned}) GarbageCollector.tune()
    GarbageCollector.allocated(2 ** 30)
    let marked = 0
    const count = (entries) => {
      for (const { detail } of entries) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) marked += 1
    }
    const observer = new PerformanceObserver((list) => count(list.getEntries()))
    observer.observe({ type: "gc" })
    globalThis.heap = Array.from({ length: 360_000 }, (_, index) => ({ index, inner: { index } }))
    const kept = []
    for (let index = 0; index < 1200; index++) {
      kept[index % 16] = new ArrayBuffer(600 * 1024)
      if (index % 16 === 0) await new Promise(setImmediate)
    }
    count(observer.takeRecords())
    console.log(marked)
  `
  // With nothing beside it and nothing in small steps, V8 does the same each time, however busy the machine is.
  const flags = ["--single-threaded-gc", "--no-incremental-marking", "--input-type=module"]
  return Number(execFileSync(process.execPath, [...flags, "--eval", program], { encoding: "utf8" }))
}

it.skipIf(Number.parseInt(process.versions.v8) < 14)("buffers come and go while the heap is marked a few times", () => {
  const [tuned, plain] = [marked(true), marked(false)]
  assert(tuned * 3 < plain, `${tuned} times, untuned ${plain}`)
})

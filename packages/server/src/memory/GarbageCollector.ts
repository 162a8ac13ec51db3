/**
 * Tunes V8's garbage collector for a server of tensors.
 *
 * By default, V8 marks the whole heap after every 64 MB of new buffers, however short they lived. With tensors of
 * megabytes this happens every few dozen requests and takes longer than the requests. So, for many large buffers:
 *
 * - Buffers that die young trigger a collection of the young generation every 16 MB, so that 64 MB are never reached.
 *   Their memory is still in the CPU cache and cheap to fill again.
 * - Other buffers count together with the heap, whose limit then triggers the collection. These are the largest
 *   buffers, whose requests outlive several young collections, and buffers of HTTP/2: node:http2 keeps some ended
 *   streams until the heap is marked, and keeps more of them the more often the young generation is collected.
 *
 * V8 also predicts which objects will live long, from earlier objects of the same allocation site, and allocates them
 * where only full collections look. Replaced tables of node:http2 keep their streams and all that belongs to them; V8
 * then predicts a long life for all objects of these kinds, which comes true. Without the prediction a small gRPC
 * request leaves 150 bytes to full collections instead of 900, and costs an eighth less.
 *
 * Holds for the whole process (docs/performance.md), so a server calls it only with the option `tuneGarbageCollector`.
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** V8 can count buffers with its heap since then. Unknown flags are complained about on stderr. */
const sinceMajor = 14

/** Bytes of garbage after which the young are collected, in 0.4 ms. V8 by itself waits for 64 MiB. */
const youngLimit = 16 * 2 ** 20

/**
 * Maximum size of a buffer, in bytes. Requests with larger ones would outlive several young collections and be
 * promoted.
 */
const maxYoungBuffer = youngLimit / 8

/** Bytes of allocations between two checks of the external memory, each of 2 µs. */
const checkInterval = youngLimit / 4

let tuned = false
let countsBuffers = false
let bytes = 0
/** The minimum of external memory since the last minor collection, in bytes. */
let minExternal = Infinity
/** Undefined until buffers come in masses. */
let collect: NodeJS.GCFunction | undefined

/** Tunes V8; further calls have no effect. */
export const tune = (): void => {
  if (tuned) return
  tuned = true
  setFlagsFromString("--no-allocation-site-pretenuring")
}

/** Called for each large buffer. `diesYoung`: nothing keeps the buffer once its request is over. */
export const allocated = (length: number, diesYoung: boolean): void => {
  if (!tuned) return
  if (!diesYoung || length > maxYoungBuffer) return countBuffers(length)
  if (collect === undefined) {
    if (youngBuffers.reached(length)) collect = globalThis.gc ?? exposed()
    return
  }
  bytes += length
  if (bytes < checkInterval) return
  bytes = 0
  const external = getHeapStatistics().external_memory
  // V8 frees collected buffers a little later, on another thread.
  minExternal = Math.min(minExternal, external)
  if (external - minExternal < youngLimit) return
  minExternal = Infinity
  collect({ type: "minor" })
}

const countBuffers = (length: number): void => {
  if (countsBuffers || Number.parseInt(process.versions.v8) < sinceMajor || !oldBuffers.reached(length)) return
  countsBuffers = true
  setFlagsFromString("--external-memory-accounted-in-global-limit")
}

/** Returns the `gc` function that `--expose-gc` would define as a global. */
const exposed = (): NodeJS.GCFunction => {
  setFlagsFromString("--expose-gc")
  const gc: NodeJS.GCFunction = runInNewContext("gc")
  setFlagsFromString("--no-expose-gc")
  return gc
}

/** Detects 64 MiB of allocations within 10 s: about what V8 would mark its heap for by itself. */
class AllocationRate {
  #startedAt = 0
  #bytes = 0

  reached(length: number): boolean {
    const now = performance.now()
    if (now - this.#startedAt > 10_000) {
      this.#startedAt = now
      this.#bytes = 0
    }
    this.#bytes += length
    return this.#bytes >= 64 * 2 ** 20
  }
}
const youngBuffers = new AllocationRate()
const oldBuffers = new AllocationRate()

/**
 * V8's garbage collector, told what is worth its while in a server of tensors.
 *
 * By itself it marks the whole heap again for every 64 MB of buffers that have come, however short they lived: for tensors of
 * megabytes that is every few dozen requests, and takes longer than answering them. Counted together with the heap, buffers
 * are freed by the small collections of young objects, and the heap is marked when it has grown. Where requests are small it
 * would be marked more often for that, so V8 is told only once buffers come in masses. From then on the young are collected
 * more often than V8 would, for buffers that are still in the cache are filled again at less cost than others.
 *
 * It also guesses which objects will live long, from those that were made at the same place before, and puts these where
 * only full collections look. Tables of node:http2 that have been replaced keep the streams they held, and these what was
 * made for them; seeing so much survive, V8 takes all of their kind for old, and from then on it is. Without the guess a
 * small gRPC request leaves 150 bytes to the full collections and not 900, and costs an eighth less.
 *
 * Holds for the whole process (docs/performance.md).
 */
import { getHeapStatistics, setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** V8 can count buffers with its heap since then. Unknown flags are complained about on stderr. */
const sinceMajor = 14

/** So many bytes of large buffers within so many milliseconds are masses: about what V8 would mark its heap for by itself. */
const masses = 64 * 2 ** 20
const period = 10_000

/** Bytes of garbage after which the young are collected, in 0.4 ms. V8 by itself waits for 64 MiB. */
const young = 16 * 2 ** 20

/** Requests with larger buffers would outlive several such collections, and be old before they are garbage. */
const largest = young / 8

/** So many bytes later it is asked again how much there is, in 2 µs. */
const between = young / 4

let tuned = false
let begun = 0
let bytes = 0
/** Of all buffers, the fewest bytes that there were since the young were collected. */
let fewest = Infinity
/** Undefined until buffers come in masses. */
let collect: NodeJS.GCFunction | undefined

/** Once for a process. */
export const tune = (): void => {
  if (tuned) return
  tuned = true
  setFlagsFromString("--no-allocation-site-pretenuring")
}

/** Called for each large buffer, whoever gives it back. */
export const allocated = (length: number): void => {
  if (!tuned) return
  if (collect === undefined) return watch(length)
  if (length > largest) return
  bytes += length
  if (bytes < between) return
  bytes = 0
  const held = getHeapStatistics().external_memory
  // What a collection has found is given back a little later, by another thread.
  fewest = Math.min(fewest, held)
  if (held - fewest < young) return
  fewest = Infinity
  collect({ type: "minor" })
}

const watch = (length: number): void => {
  const now = performance.now()
  if (now - begun > period) {
    begun = now
    bytes = 0
  }
  bytes += length
  if (bytes < masses || Number.parseInt(process.versions.v8) < sinceMajor) return
  bytes = 0
  setFlagsFromString("--external-memory-accounted-in-global-limit")
  collect = globalThis.gc ?? exposed()
}

/** What `--expose-gc` would have made a global. */
const exposed = (): NodeJS.GCFunction => {
  setFlagsFromString("--expose-gc")
  const gc: NodeJS.GCFunction = runInNewContext("gc")
  setFlagsFromString("--no-expose-gc")
  return gc
}

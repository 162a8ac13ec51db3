/**
 * V8's garbage collector, told what is worth its while in a server of tensors.
 *
 * By itself it marks the whole heap again for every 64 MB of buffers that have come, however short they lived: for tensors of
 * megabytes that is every few dozen requests, and takes longer than answering them. Counted together with the heap, buffers
 * are freed by the small collections of young objects, and the heap is marked when it has grown. Where requests are small it
 * would be marked more often for that, so V8 is told only once buffers come in masses.
 *
 * It also guesses which objects will live long, from those that were made at the same place before, and puts these where
 * only full collections look. Tables of node:http2 that have been replaced keep the streams they held, and these what was
 * made for them; seeing so much survive, V8 takes all of their kind for old, and from then on it is. Without the guess a
 * small gRPC request leaves 150 bytes to the full collections and not 900, and costs an eighth less.
 *
 * Holds for the whole process (docs/performance.md).
 */
import { setFlagsFromString } from "node:v8"

/** V8 can count buffers with its heap since then. Unknown flags are complained about on stderr. */
const sinceMajor = 14

/** So many bytes of large buffers within so many milliseconds are masses: about what V8 would mark its heap for by itself. */
const masses = 64 * 2 ** 20
const period = 10_000

let tuned = false
let countsBuffers = false
let begun = 0
let bytes = 0

/** Once for a process. */
export const tune = (): void => {
  if (tuned) return
  tuned = true
  setFlagsFromString("--no-allocation-site-pretenuring")
}

/** Called for each large buffer. */
export const allocated = (length: number): void => {
  if (!tuned || countsBuffers) return
  const now = performance.now()
  if (now - begun > period) {
    begun = now
    bytes = 0
  }
  bytes += length
  if (bytes < masses || Number.parseInt(process.versions.v8) < sinceMajor) return
  countsBuffers = true
  setFlagsFromString("--external-memory-accounted-in-global-limit")
}

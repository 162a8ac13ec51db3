/**
 * V8's garbage collector, told what is worth its while in a server of tensors. By itself it marks the whole heap again for
 * every 64 MB of buffers that have come, however short they lived: for tensors of megabytes that is every few dozen
 * requests, and takes longer than answering them. Counted together with the heap, buffers are freed by the small
 * collections of young objects, and the heap is marked when it has grown.
 *
 * It also guesses which objects will live long, from those that were made at the same place before, and puts these where
 * only full collections look. Tables of node:http2 that have been replaced keep the streams they held, and these what was
 * made for them; seeing so much survive, V8 takes all of their kind for old, and from then on it is. Without the guess a
 * small gRPC request leaves 150 bytes to the full collections and not 900, and costs an eighth less.
 *
 * Holds for the whole process (docs/performance.md).
 */
import { setFlagsFromString } from "node:v8"

/** V8 counts buffers with its heap since then. Unknown flags are complained about on stderr. */
const sinceMajor = 14

export const tune = (): void => {
  setFlagsFromString("--no-allocation-site-pretenuring")
  if (Number.parseInt(process.versions.v8) < sinceMajor) return
  setFlagsFromString("--external-memory-accounted-in-global-limit")
}

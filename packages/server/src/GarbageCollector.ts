/**
 * V8's garbage collector, told what is worth its while in a server of tensors. By itself it marks the whole heap again for
 * every 64 MB of buffers that have come, however short they lived: for tensors of megabytes that is every few dozen
 * requests, and takes longer than answering them. Counted together with the heap, buffers are freed by the small
 * collections of young objects, and the heap is marked when it has grown.
 *
 * Holds for the whole process (docs/performance.md).
 */
import { setFlagsFromString } from "node:v8"

/** V8 has it since then. Unknown flags are complained about on stderr. */
const sinceMajor = 14

export const tune = (): void => {
  if (Number.parseInt(process.versions.v8) < sinceMajor) return
  setFlagsFromString("--external-memory-accounted-in-global-limit")
}

/**
 * Entry of a thread that performs file system calls, one at a time. Its calls are synchronous, so a file system that
 * does not answer blocks this thread alone, and not the four threads that Node shares between files, DNS and zlib.
 */
import { parentPort, workerData } from "node:worker_threads"
import { type FileCall, type FileReply, perform } from "./FileCall.ts"

const progress: Int32Array<SharedArrayBuffer> = workerData
const hasProgressed = () => void Atomics.add(progress, 0, 1)

const replyTo = (call: FileCall): FileReply => {
  try {
    return { _tag: "Done", result: perform(call, hasProgressed) }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined
    return { _tag: "Failed", message, code }
  }
}

parentPort?.on("message", (call: FileCall) => {
  const reply = replyTo(call)
  const moved = reply._tag === "Done" && reply.result instanceof Uint8Array ? [reply.result.buffer] : []
  parentPort?.postMessage(reply, moved)
})
// This thread takes calls from now on.
hasProgressed()

/**
 * Main thread's side of one file thread: runs a call, and detects that it makes no progress. FilePool.ts has several.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { constVoid } from "effect/Function"
import { Worker, type WorkerOptions } from "node:worker_threads"
import type { FileCall, FileReply } from "./FileCall.ts"

/** Starts a thread; tests pass one that never replies. */
export type Spawn = (options: WorkerOptions) => Worker

// `import.meta.resolve` goes through the package's exports: the same line works from source and when built.
export const spawn: Spawn = (options) =>
  new Worker(new URL(import.meta.resolve("@nereid/onnx/internal/file/fileWorker")), options)

export interface CallEvents {
  readonly onReply: (reply: FileReply) => void
  /** No progress for the time limit; `onReply` may follow. */
  readonly onStall: () => void
}

export class FileThread {
  readonly #worker: Worker
  readonly #progress = new Int32Array(new SharedArrayBuffer(4))
  #events: CallEvents | undefined
  #timer: NodeJS.Timeout | undefined

  /** `onExit`: the thread has died. It follows the reply to its call. */
  constructor(start: Spawn, onExit: () => void) {
    // Without the program's Node options, such as --import, which would run in the thread too.
    this.#worker = start({ name: "files", workerData: this.#progress, execArgv: [], env: {} })
    let reason: string | undefined
    this.#worker.once("error", (error: unknown) => (reason = errorMessage(error)))
    this.#worker.on("message", (reply: FileReply) => this.#settle(reply))
    this.#worker.once("exit", (code) => {
      const message = `its file thread died: ${reason ?? `exit code ${code}`}`
      this.#settle({ _tag: "Failed", message, code: undefined })
      onExit()
    })
    this.#worker.unref()
  }

  /** Whether the thread still loads its modules, and takes no calls yet. */
  get isStarting(): boolean {
    return Atomics.load(this.#progress, 0) === 0
  }

  /** Only when the thread has no call. `stallTimeout` in milliseconds. */
  run(call: FileCall, stallTimeout: number, events: CallEvents): void {
    this.#events = events
    this.#worker.ref()
    this.#worker.postMessage(call, [])
    // A thread that is still starting has more time: no progress has been seen yet, and its start is progress.
    let before = -1
    this.#timer = setInterval(() => {
      const now = Atomics.load(this.#progress, 0)
      if (now !== before) return void (before = now)
      clearInterval(this.#timer)
      this.#worker.unref()
      events.onStall()
    }, stallTimeout)
  }

  /** Only when the thread has no call: a thread that is blocked in the system does not end. */
  end(): void {
    this.#worker.terminate().catch(constVoid)
  }

  #settle(reply: FileReply): void {
    const events = this.#events
    if (events === undefined) return
    this.#events = undefined
    clearInterval(this.#timer)
    this.#worker.unref()
    events.onReply(reply)
  }
}

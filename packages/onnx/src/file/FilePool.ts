/**
 * Threads for file system calls, shared by all models of the process. A call without progress for 30 seconds fails, and
 * its thread is left behind:
 *
 *   call ─► queue ─► idle thread, or another one ─┬─ reply ──► done, the thread is idle
 *                                                 └─ stall ──► failed, the thread is stalled until it replies
 *
 * Calls of one path run one after another. While a path is stalled, its further calls fail at once.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import type { FileCall, FileReply } from "./FileCall.ts"
import { FileThread, spawn, type Spawn } from "./FileThread.ts"
import * as StalledExit from "./StalledExit.ts"

/** Maximum threads that perform calls, and maximum threads that are left behind. */
const maxThreads = 4
const maxStalled = 16

/** Maximum calls that wait for a thread. */
const maxQueued = 1024

/** Milliseconds without progress after which a call fails. */
const stallTimeoutMillis = 30_000

/** Milliseconds that a call waits before a further thread is started, which costs more than most calls. */
const growthDelay = 20

/** Milliseconds after which an idle thread ends. */
const idleTimeout = 60_000

export interface FilePoolOptions {
  readonly spawn?: Spawn
  /** Milliseconds. Default 30 seconds. */
  readonly stallTimeout?: number
}

interface QueuedCall {
  readonly call: FileCall
  readonly done: (reply: FileReply) => void
}

export class FilePool {
  readonly #spawn: Spawn
  readonly #stallMillis: number
  #queue: Array<QueuedCall> = []
  /** Paths with a call under way. */
  readonly #busy = new Set<string>()
  /** Paths whose last call has stalled. */
  readonly #stalled = new Set<string>()
  /** Threads, except those that have stalled. */
  readonly #threads = new Set<FileThread>()
  /** Threads without a call, with the timers that end them; the last one is used first. */
  readonly #idle = new Map<FileThread, NodeJS.Timeout>()
  /** Whether a further thread will be started if calls still wait. */
  #isGrowing = false

  constructor(options: FilePoolOptions = {}) {
    this.#spawn = options.spawn ?? spawn
    this.#stallMillis = options.stallTimeout ?? stallTimeoutMillis
  }

  /** Starts the first thread before its first call, which then does not wait for it. */
  prepare(): void {
    if (this.#threads.size > 0) return
    const thread = this.#start()
    if (thread instanceof FileThread) this.#rest(thread)
  }

  /** Calls `done` once; before it returns if the call is refused. */
  call(call: FileCall, done: (reply: FileReply) => void): void {
    const problem = this.#problem(call.path)
    if (problem !== undefined) return done(failed(problem))
    this.#queue.push({ call, done })
    this.#dispatch()
  }

  /** Ends the threads without a call, for when few calls will come. */
  release(): void {
    for (const thread of this.#idle.keys()) this.#end(thread)
  }

  #problem(path: string): string | undefined {
    if (this.#stalled.has(path)) return `an earlier call has not returned: ${noAnswer(this.#stallMillis)}`
    if (this.#stalled.size >= maxStalled)
      return `${maxStalled} file system calls have not returned, and no further file is read until one does`
    if (this.#queue.length >= maxQueued) return `${maxQueued} file system calls wait already`
    return undefined
  }

  #dispatch(): void {
    for (;;) {
      const index = this.#queue.findIndex(({ call }) => !this.#busy.has(call.path))
      const next = this.#queue[index]
      if (next === undefined) return
      const thread = this.#take()
      if (thread === undefined) return
      this.#queue.splice(index, 1)
      if (thread instanceof FileThread) this.#run(thread, next)
      else next.done(failed(thread.problem))
    }
  }

  /** An idle thread, the first one, or nothing yet. */
  #take(): FileThread | StartProblem | undefined {
    const [idle] = [...this.#idle].at(-1) ?? []
    if (idle !== undefined) {
      clearTimeout(this.#idle.get(idle))
      this.#idle.delete(idle)
      return idle
    }
    if (this.#threads.size === 0) return this.#start()
    if (this.#threads.size < maxThreads) this.#growLater()
    return undefined
  }

  #growLater(): void {
    if (this.#isGrowing) return
    this.#isGrowing = true
    setTimeout(() => this.#grow(), growthDelay)
  }

  #grow(): void {
    this.#isGrowing = false
    if (this.#queue.length === 0 || this.#idle.size > 0 || this.#threads.size >= maxThreads) return
    // Another thread would start later than the first one takes the calls that wait, and take 7 MB.
    if (this.#threads.size > 0 && [...this.#threads].every(({ isStarting }) => isStarting)) return this.#growLater()
    const thread = this.#start()
    if (thread instanceof FileThread) this.#rest(thread)
    this.#dispatch()
  }

  #start(): FileThread | StartProblem {
    try {
      const thread: FileThread = new FileThread(this.#spawn, () => this.#forget(thread))
      this.#threads.add(thread)
      return thread
    } catch (error) {
      return { problem: `the file thread failed to start: ${errorMessage(error)}` }
    }
  }

  #run(thread: FileThread, { call, done }: QueuedCall): void {
    const { path } = call
    this.#busy.add(path)
    thread.run(call, this.#stallMillis, {
      onReply: (reply) => {
        this.#busy.delete(path)
        if (this.#stalled.delete(path)) {
          thread.end()
          StalledExit.remove()
          return
        }
        if (this.#threads.has(thread)) this.#rest(thread)
        done(reply)
        this.#dispatch()
      },
      onStall: () => {
        this.#threads.delete(thread)
        this.#busy.delete(path)
        this.#stalled.add(path)
        StalledExit.add()
        done(failed(noAnswer(this.#stallMillis)))
        const isSame = (queued: QueuedCall) => queued.call.path === path
        const waiting = this.#queue.filter(isSame)
        this.#queue = this.#queue.filter((queued) => !isSame(queued))
        for (const queued of waiting) queued.done(failed(noAnswer(this.#stallMillis)))
        this.#dispatch()
      },
    })
  }

  #rest(thread: FileThread): void {
    this.#idle.set(thread, setTimeout(() => this.#end(thread), idleTimeout).unref())
  }

  #end(thread: FileThread): void {
    this.#forget(thread)
    thread.end()
  }

  #forget(thread: FileThread): void {
    clearTimeout(this.#idle.get(thread))
    this.#idle.delete(thread)
    this.#threads.delete(thread)
  }
}

interface StartProblem {
  readonly problem: string
}

const failed = (message: string): FileReply => ({ _tag: "Failed", message, code: undefined })

const noAnswer = (millis: number) => `the file system did not answer within ${millis / 1000} seconds`

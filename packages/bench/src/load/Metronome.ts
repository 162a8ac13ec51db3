/**
 * Clock of the loads. Timers of the event loop are up to a millisecond late, and busy waiting would take a core from
 * the server. A worker thread therefore sleeps until shortly before the time, and only the rest is a busy wait.
 */
import { Worker } from "node:worker_threads"
import type { Clock } from "./Clock.ts"

/** Milliseconds by which a sleep may end late. */
const lead = 0.08

/** State shared with the worker thread, worker.ts. */
export interface Shared {
  /** Counts of requested and completed sleeps. */
  readonly cells: Int32Array
  /** Duration of the sleep, in milliseconds. */
  readonly delay: Float64Array
}

/** Index in `Shared.cells` of the count of requested sleeps. */
export const asked = 0
/** Index in `Shared.cells` of the count of completed sleeps. */
export const ended = 1

/** Starts the clock and its worker thread. The clock does not keep the process alive; `close` ends the thread. */
export const start = (): Clock => {
  const shared: Shared = {
    cells: new Int32Array(new SharedArrayBuffer(8)),
    delay: new Float64Array(new SharedArrayBuffer(8)),
  }
  const worker = new Worker(new URL(import.meta.resolve("@nereid/bench/internal/load/worker")), { workerData: shared })
  // The clock does not keep the process alive; sockets that wait for replies do.
  worker.unref()
  let current: { readonly at: number; readonly call: () => void } | undefined
  let isPending = false
  let closed = false

  const spin = () => {
    isPending = false
    if (current === undefined || closed) return
    const { at, call } = current
    const left = at - performance.now()
    if (left > 0) return wait(left)
    current = undefined
    call()
  }
  const wait = (left: number) => {
    if (left > lead) return sleep(left)
    if (isPending) return
    isPending = true
    setImmediate(spin)
  }
  const sleep = (left: number) => {
    shared.delay[0] = left - lead
    Atomics.add(shared.cells, asked, 1)
    Atomics.notify(shared.cells, asked)
  }
  const listen = () => {
    const { async, value } = Atomics.waitAsync(shared.cells, ended, Atomics.load(shared.cells, ended))
    // A sleep ended between the two reads of the count. Every caller of `listen` looks at the time afterwards.
    if (!async) return listen()
    void value.then(() => {
      if (closed) return
      listen()
      spin()
    })
  }
  listen()

  return {
    now: () => performance.now(),
    wake: (at, call) => {
      current = { at, call }
      wait(at - performance.now())
    },
    close: () => {
      closed = true
      void worker.terminate()
    },
  }
}

/**
 * Asks a process for the stacks of its threads. A thread that holds Python's global lock keeps it from answering; a
 * signal then makes it print them on its stderr.
 */
import * as FrameKind from "../wire/FrameKind.ts"
import * as Header from "../wire/Header.ts"
import type { SpawnedProcess } from "./SpawnedProcess.ts"

/** Milliseconds until an answer. */
const answerTimeout = 1000
/** Milliseconds to print after the signal. */
const printTimeout = 500

export class Stacks {
  readonly #process: () => SpawnedProcess | undefined
  readonly #waiting = new Map<number, (text: string) => void>()
  #next = 1

  constructor(process: () => SpawnedProcess | undefined) {
    this.#process = process
  }

  /** Calls `done` once, with the text or a remark that the process has printed it. */
  dump(done: (text: string) => void): void {
    const number = this.#next++
    const finish = (text: string) => {
      if (!this.#waiting.delete(number)) return
      clearTimeout(timer)
      done(text)
    }
    const timer = setTimeout(() => {
      this.#process()?.signal("SIGUSR1")
      setTimeout(() => finish("The process did not answer; it has printed its stacks."), printTimeout)
    }, answerTimeout)
    this.#waiting.set(number, finish)
    this.#process()?.sendControl(FrameKind.DUMP_STACKS, `{"n":${number}}`)
  }

  received(header: Header.Header): void {
    this.#waiting.get(Header.integer(header, "n") ?? 0)?.(Header.text(header, "text") ?? "")
  }
}

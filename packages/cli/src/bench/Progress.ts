/** Progress bar of a benchmark on a terminal; silent if the output is not a terminal. */
import type { WriteStream } from "node:tty"

const width = 24

/** Milliseconds between two looks at it. */
const refresh = 200

export class Progress {
  readonly #terminal: WriteStream | undefined
  /** Total duration in milliseconds; 0 if unknown. */
  readonly #total: number
  #done = 0
  #part: { readonly text: string; readonly began: number; readonly duration: number } | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(terminal: WriteStream, total: number) {
    this.#terminal = terminal.isTTY ? terminal : undefined
    this.#total = total
  }

  /** Begins a part and completes the previous one. `duration` is in milliseconds. */
  begin(text: string, duration: number): void {
    if (this.#terminal === undefined) return
    this.#done += this.#part?.duration ?? 0
    this.#part = { text, began: performance.now(), duration }
    this.#timer ??= setInterval(() => this.#draw(), refresh).unref()
    this.#draw()
  }

  /** Takes the bar away, so that other lines can be written; it comes back by itself. */
  clear(): void {
    this.#terminal?.write("\r\x1b[K")
  }

  end(): void {
    clearInterval(this.#timer)
    this.clear()
  }

  #draw(): void {
    if (this.#part === undefined) return
    const { text, began, duration } = this.#part
    if (this.#total === 0) return void this.#terminal?.write(`\r\x1b[K${text} …`)
    const done = Math.min(this.#total, this.#done + Math.min(duration, performance.now() - began))
    const filled = Math.round((width * done) / this.#total)
    const bar = `${"━".repeat(filled)}\x1b[2m${"─".repeat(width - filled)}\x1b[0m`
    const left = Math.ceil((this.#total - done) / 1000)
    this.#terminal?.write(`\r\x1b[K${bar} ${text}, ${left} s left`)
  }
}

/**
 * Lines that a process prints, bounded in length and in rate: a model that prints in a loop fills neither the memory of
 * the server nor its log.
 */
import type { Readable } from "node:stream"
import { StringDecoder } from "node:string_decoder"

/** Characters of a line; the rest is dropped. */
const maxLength = 8 * 1024

/** Lines at once, and per second from then on. */
const burst = 10_000
const perSecond = 500

export class PrintedLines {
  readonly #print: (line: string) => void
  readonly #now: () => number
  readonly #decoder = new StringDecoder("utf8")
  #line = ""
  #allowed = burst
  #refilledAt: number
  #dropped = 0

  /** `now` is a monotonic time in milliseconds. */
  constructor(print: (line: string) => void, now: () => number) {
    this.#print = print
    this.#now = now
    this.#refilledAt = now()
  }

  write(chunk: Buffer): void {
    this.#take(this.#decoder.write(chunk))
  }

  /** Prints the last line, if it has no end, and the number of dropped lines. */
  end(): void {
    this.#take(this.#decoder.end())
    if (this.#line !== "") this.#complete()
    this.#report()
  }

  #take(text: string): void {
    for (let from = 0; from < text.length;) {
      const newline = text.indexOf("\n", from)
      const end = newline < 0 ? text.length : newline
      // One character more tells a line that is too long.
      if (this.#line.length <= maxLength) this.#line += text.slice(from, Math.min(end, from + maxLength + 1))
      from = end + 1
      if (newline >= 0) this.#complete()
    }
  }

  #complete(): void {
    const line = this.#line.endsWith("\r") ? this.#line.slice(0, -1) : this.#line
    this.#line = ""
    this.#refill()
    if (this.#allowed < 1) {
      this.#dropped += 1
      return
    }
    this.#report()
    this.#allowed -= 1
    this.#print(line.length > maxLength ? `${line.slice(0, maxLength)}… (cut)` : line)
  }

  #refill(): void {
    const now = this.#now()
    this.#allowed = Math.min(burst, this.#allowed + ((now - this.#refilledAt) / 1000) * perSecond)
    this.#refilledAt = now
  }

  #report(): void {
    if (this.#dropped === 0) return
    this.#print(`(${this.#dropped} lines were dropped: more than ${perSecond} per second)`)
    this.#dropped = 0
  }
}

/** Reads the lines of a stream to its end. */
export const read = (stream: Readable, print: (line: string) => void): void => {
  const lines = new PrintedLines(print, () => performance.now())
  stream.on("data", (chunk: Buffer) => lines.write(chunk))
  stream.on("error", () => {})
  stream.once("close", () => lines.end())
}

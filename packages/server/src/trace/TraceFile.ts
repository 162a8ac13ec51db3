/**
 * Trace file: a JSON array, written asynchronously as its elements come. Elements that a slow disk cannot take are
 * dropped, and a file that fails takes no more. Each file reports at most one problem.
 */
import { createWriteStream, type WriteStream } from "node:fs"

/** Bytes that may wait for the disk. */
const maxPendingBytes = 16 * 1024 * 1024

export class TraceFile {
  readonly #stream: WriteStream
  readonly #path: string
  readonly #report: (problem: string) => void
  #separator = "[\n"
  #isReported = false
  #failed = false
  #closed: Promise<void> | undefined

  /** Overwrites what is there. */
  constructor(path: string, report: (problem: string) => void) {
    this.#path = path
    this.#report = report
    this.#stream = createWriteStream(path)
    this.#stream.on("error", (error) => {
      this.#failed = true
      this.#problem(`cannot be written: ${error.message}`)
    })
  }

  /** `elements` are those of the array, with commas between them. */
  write(elements: string): void {
    if (this.#failed) return
    if (this.#stream.writableLength > maxPendingBytes) return this.#problem("is too slow; traces are dropped")
    this.#stream.write(this.#separator + elements)
    this.#separator = ",\n"
  }

  /** Closes the file. Resolves once everything is written, or the file has failed. */
  close(): Promise<void> {
    return (this.#closed ??= new Promise((resolve) => {
      if (this.#stream.closed) return resolve()
      this.#stream.once("close", () => resolve())
      this.#stream.end(this.#separator === ",\n" ? "\n]\n" : "[]\n")
    }))
  }

  #problem(problem: string): void {
    if (!this.#isReported) this.#report(`The trace file ${this.#path} ${problem}`)
    this.#isReported = true
  }
}

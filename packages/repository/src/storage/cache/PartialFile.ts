/**
 * A file that is being downloaded in ranges, in any order. The ranges that are complete are recorded beside it, so that
 * a download goes on after the end of its process. Two processes may write the same file: they write the same bytes.
 */
import { type FileHandle, open, readFile, rename, rm, writeFile } from "node:fs/promises"
import * as JsonReply from "../http/JsonReply.ts"
import type { ByteRange } from "../store/ObjectStore.ts"

/** Bytes of a range: one request. */
export const defaultRangeBytes = 16 * 1024 * 1024

export class PartialFile {
  readonly path: string
  readonly #file: FileHandle
  readonly #size: number
  readonly #rangeBytes: number
  readonly #complete: Set<number>
  /** Ranges that are complete, and not recorded yet. */
  #unrecorded: Array<number> = []
  /** Records are written one after the other, each with all ranges that have become complete before it. */
  #recorded: Promise<void> = Promise.resolve()

  private constructor(path: string, file: FileHandle, size: number, rangeBytes: number, complete: Set<number>) {
    this.path = path
    this.#file = file
    this.#size = size
    this.#rangeBytes = rangeBytes
    this.#complete = complete
  }

  static async open(path: string, size: number, rangeBytes: number): Promise<PartialFile> {
    const file = await open(path, "r+").catch(() => open(path, "w+"))
    const { size: found } = await file.stat()
    const recorded =
      found === size ? JsonReply.parse(await readFile(`${path}.ranges`, "utf8").catch(() => "")) : undefined
    const isSame = JsonReply.number(recorded, "rangeBytes") === rangeBytes
    const complete = JsonReply.items(isSame ? JsonReply.field(recorded, "complete") : undefined).filter(
      (index): index is number => Number.isSafeInteger(index),
    )
    // The whole length from the start, so that a full disk shows early where files cannot have holes.
    if (found !== size) await file.truncate(size)
    return new PartialFile(path, file, size, rangeBytes, new Set(complete))
  }

  /** Ranges that are missing. */
  get missing(): ReadonlyArray<ByteRange> {
    const rangeBytes = this.#rangeBytes
    return Array.from({ length: Math.ceil(this.#size / rangeBytes) }, (_, index) => index)
      .filter((index) => !this.#complete.has(index))
      .map((index) => ({ start: index * rangeBytes, end: Math.min(this.#size, (index + 1) * rangeBytes) }))
  }

  write(bytes: Uint8Array, position: number): Promise<unknown> {
    return this.#file.write(bytes, 0, bytes.length, position)
  }

  /** A range is complete. Its record is written while others are read. */
  completed({ start }: ByteRange): void {
    this.#unrecorded.push(Math.floor(start / this.#rangeBytes))
    this.#recorded = this.#recorded.then(() => this.#record())
    // Told by `recorded`.
    this.#recorded.catch(() => undefined)
  }

  /** Waits for the records of all complete ranges. */
  recorded(): Promise<void> {
    return this.#recorded
  }

  async #record(): Promise<void> {
    const ranges = this.#unrecorded.splice(0)
    if (ranges.length === 0 || this.#size <= this.#rangeBytes) return
    // Before the record, which would be wrong if only that survived a loss of power.
    await this.#file.datasync()
    for (const index of ranges) this.#complete.add(index)
    const draft = `${this.path}.ranges.${process.pid}`
    await writeFile(draft, JSON.stringify({ rangeBytes: this.#rangeBytes, complete: [...this.#complete] }))
    await rename(draft, `${this.path}.ranges`)
  }

  async sync(): Promise<void> {
    await this.#file.datasync()
  }

  async close(): Promise<void> {
    await this.#recorded.catch(() => undefined)
    await this.#file.close()
  }
}

/** Removes a partial file with its record. */
export const remove = async (path: string): Promise<void> => {
  await rm(path, { force: true })
  await rm(`${path}.ranges`, { force: true })
}

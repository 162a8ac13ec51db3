/**
 * POSIX shared memory object, opened as the file that Linux shows for it. Like a mapping, it stays open if its name is
 * removed or reused. After it is closed, it is never read or written, because its file descriptor may belong to another
 * file.
 */
import { closeSync, constants, fstatSync, openSync, readSync, writeSync } from "node:fs"
import { join } from "node:path"
import { Result } from "effect"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

/** One call to the system takes at most 2 GiB. */
const maxBytesPerCall = 2 ** 30

/** Does not follow links, and does not block on a pipe. */
const openFlags = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** The file's name for a key, which may begin with slashes as `shm_open` has it. */
export const objectName = (key: string): string => key.replace(/^\/+/, "")

export class SharedMemoryObject {
  readonly #file: number
  readonly #inode: number
  #isClosed = false

  private constructor(file: number, inode: number) {
    this.#file = file
    this.#inode = inode
  }

  /**
   * Opens an object. Returns undefined if it does not exist, is not readable and writable, or is not a shared memory
   * object.
   */
  static open(directory: string, key: string): SharedMemoryObject | undefined {
    const name = objectName(key)
    if (name === "" || name === "." || name === ".." || name.includes("/") || name.includes("\0")) return undefined
    let file: number | undefined
    try {
      file = openSync(join(directory, name), openFlags)
      const status = fstatSync(file)
      if (status.isFile()) return new SharedMemoryObject(file, status.ino)
    } catch {
      // Clients learn only that it cannot be opened, not why.
    }
    if (file !== undefined) closeSync(file)
    return undefined
  }

  /** Opens the same object in another process of this user, as long as this one is open. */
  get reopened(): { readonly path: string; readonly inode: number } {
    return { path: `/proc/${process.pid}/fd/${this.#file}`, inode: this.#inode }
  }

  /** Returns the current size, in bytes; the owner may change it at any time. */
  size(): number {
    return fstatSync(this.#file).size
  }

  /** Copies these bytes, or returns an error message. */
  read(offset: number, length: number): Result.Result<Uint8Array, string> {
    return this.#transferAll(offset, length, () => {
      // Allocates a separate buffer without zeroing it, because all of it is overwritten.
      const bytes = new Uint8Array(Buffer.allocUnsafeSlow(length).buffer)
      for (let done = 0; done < length;) {
        const count = readSync(this.#file, bytes, done, Math.min(length - done, maxBytesPerCall), offset + done)
        if (count === 0) throw new Error("the object was truncated")
        done += count
      }
      return bytes
    })
  }

  /** Never makes the object longer; fails with the reason. */
  write(offset: number, bytes: Uint8Array): Result.Result<void, string> {
    return this.#transferAll(offset, bytes.length, () => {
      for (let done = 0; done < bytes.length;) {
        done += writeSync(this.#file, bytes, done, Math.min(bytes.length - done, maxBytesPerCall), offset + done)
      }
    })
  }

  #transferAll<A>(offset: number, length: number, transfer: () => A): Result.Result<A, string> {
    if (this.#isClosed) return Result.fail("the object is closed")
    try {
      const size = this.size()
      if (offset + length <= size) return Result.succeed(transfer())
      return Result.fail(`the object was truncated to ${size} bytes`)
    } catch (error) {
      // Such as ENOSPC: pages that were never written are only now taken from the system's memory.
      return Result.fail(errorMessage(error))
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    closeSync(this.#file)
  }
}

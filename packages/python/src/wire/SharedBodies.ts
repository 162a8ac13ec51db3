/**
 * Memory for the bodies of large frames that the server and a process share, so that their bytes skip the socket:
 *
 *   │ bodies of the server │ bodies of the process │
 *
 * The process has made it, as a file without a name (shared_bodies.py), and maps it. The server reads and writes the
 * file, one copy each way. Nothing is left of it when both have closed it.
 */
import { closeSync, constants, fstatSync, openSync, readSync, writevSync } from "node:fs"
import { minPooled } from "./BodyPool.ts"
import type { FrameBody } from "./FrameBody.ts"
import * as Header from "./Header.ts"
import { SharedRing } from "./SharedRing.ts"

/** Counts of released bodies have 24 bits in a frame. */
export const releasedMask = 0xff_ffff

/** The part of a half that one body may have. The socket is faster beyond it: both sides copy at the same time. */
const maxPart = 1 / 8

export class SharedBodies {
  readonly #descriptor: number
  /** Of each half. */
  readonly #capacity: number
  readonly #ring: SharedRing
  /** Bodies of the server that the process has released. */
  #returned = 0
  #released = 0
  #isOpen = true
  #writes = true

  /** `memory`: what the process says about it. Undefined if this cannot be opened. */
  static open(memory: unknown): SharedBodies | undefined {
    if (!Header.isRecord(memory)) return undefined
    const [pid, fd, inode] = [
      Header.integer(memory, "pid"),
      Header.integer(memory, "fd"),
      Header.integer(memory, "inode"),
    ]
    const capacity = Header.integer(memory, "capacity") ?? 0
    let descriptor: number | undefined
    try {
      descriptor = openSync(`/proc/${pid}/fd/${fd}`, constants.O_RDWR)
      const { ino, size } = fstatSync(descriptor)
      if (ino === inode && capacity > 0 && size === 2 * capacity) return new SharedBodies(descriptor, capacity)
    } catch {
      // Bodies travel over the socket.
    }
    if (descriptor !== undefined) closeSync(descriptor)
    return undefined
  }

  private constructor(descriptor: number, capacity: number) {
    this.#descriptor = descriptor
    this.#capacity = capacity
    this.#ring = new SharedRing(capacity)
  }

  /** Number of bodies of the process that were read. */
  get released(): number {
    return this.#released & releasedMask
  }

  /**
   * Takes the number of bodies that the process has released.
   * @throws Error if there are fewer
   */
  peerReleased(total: number): void {
    const number = (total - this.#returned) & releasedMask
    if (number > this.#ring.size) throw new Error(`a frame releases ${number} bodies of ${this.#ring.size}`)
    this.#returned += number
    this.#ring.release(number)
  }

  /** Writes a body and returns its offset; undefined if it must travel over the socket. */
  write({ chunks, length }: FrameBody): number | undefined {
    if (!this.#writes || length < minPooled || length > this.#capacity * maxPart) return undefined
    const start = this.#ring.take(length)
    if (start === undefined) return undefined
    try {
      if (writevSync(this.#descriptor, chunks, start) === length) return start
    } catch {
      // There is no memory for more pages.
    }
    this.#writes = false
    return undefined
  }

  /**
   * Copies a body of the process, and releases it.
   * @throws Error if it is not there
   */
  read(offset: number, target: Uint8Array): void {
    const { length } = target
    if (!this.#isOpen) throw new Error("the memory is closed")
    if (offset + length > this.#capacity) throw new Error(`a body ends at byte ${offset + length} of ${this.#capacity}`)
    const count = readSync(this.#descriptor, target, 0, length, this.#capacity + offset)
    if (count < length) throw new Error(`a body of ${length} bytes has ${count} in shared memory`)
    this.#released += 1
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#writes = false
    closeSync(this.#descriptor)
  }
}

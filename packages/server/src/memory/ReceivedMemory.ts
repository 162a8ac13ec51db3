/** The memory of a large message from its first bytes to its response: freed behind it, unless code may keep views. */
import type { MessageMemory } from "@nereid/core/internal/request/MessageMemory"
import type { ModelCalls } from "@nereid/core/internal/running/CallableModel"
import * as RequestMemory from "./RequestMemory.ts"

/**
 * Bytes of further messages after which the memory is no longer young. The garbage collector collects the young for
 * every 16 MB, or more often (GarbageCollector.ts), and promotes what survives two collections.
 */
const youth = 32 * 1024 * 1024

/** Bytes of all such memory that was allocated so far. */
let allocated = 0

export class ReceivedMemory implements MessageMemory {
  readonly bytes: Uint8Array
  /** Bytes that were allocated up to this memory. */
  readonly #allocated: number
  #isCopied: boolean | undefined
  #calls: Keeping | undefined

  /** As RequestMemory.allocate. */
  constructor(...[length, aligned, diesYoung]: Parameters<typeof RequestMemory.allocate>) {
    this.bytes = RequestMemory.allocate(length, aligned, diesYoung)
    this.#allocated = allocated += length
  }

  isCopied(): boolean {
    this.#isCopied ??= RequestMemory.isLarge(this.bytes) && allocated - this.#allocated >= youth
    return this.#isCopied
  }

  /** To be called before the request goes to the model with these calls, which may be another one by its response. */
  lend({ keepsInputs, copiesInputs }: Keeping): void {
    this.#calls = { keepsInputs, copiesInputs }
  }

  /** Whether nothing reads the memory any more, once the request has succeeded. */
  get isFree(): boolean {
    const calls = this.#calls
    if (calls === undefined) return false
    return !calls.keepsInputs || (calls.copiesInputs === true && this.#isCopied === true)
  }

  free(): void {
    RequestMemory.free(this.bytes)
  }
}

type Keeping = Pick<ModelCalls, "keepsInputs" | "copiesInputs">

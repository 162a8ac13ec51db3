/** The memory of a large message from its first bytes to its response: freed behind it, unless code may keep views. */
import type { MessageMemory } from "@nereid/core/internal/request/MessageMemory"
import type { ModelCalls } from "@nereid/core/internal/running/CallableModel"
import * as RequestMemory from "./RequestMemory.ts"

/**
 * Bytes of further messages after which the garbage collector does not count the memory as young: it collects the young
 * for every 16 MB (GarbageCollector.ts), and moves what it finds twice.
 */
const youth = 32 * 1024 * 1024

/** Bytes of all messages that have begun to arrive. */
let allocated = 0

export class ReceivedMemory implements MessageMemory {
  readonly bytes: Uint8Array
  /** Those that had begun before. */
  readonly #allocated = allocated
  #isCopied: boolean | undefined

  /** As RequestMemory.allocate. */
  constructor(...[length, aligned, diesYoung]: Parameters<typeof RequestMemory.allocate>) {
    this.bytes = RequestMemory.allocate(length, aligned, diesYoung)
    allocated += length
  }

  isCopied(): boolean {
    this.#isCopied ??= RequestMemory.isLarge(this.bytes) && allocated - this.#allocated >= youth
    return this.#isCopied
  }

  /** Whether nothing reads the memory once a request of this model has succeeded. */
  isFreeAfter({ keepsInputs, copiesInputs = false }: Pick<ModelCalls, "keepsInputs" | "copiesInputs">): boolean {
    return !keepsInputs || (copiesInputs && this.#isCopied === true)
  }

  free(): void {
    RequestMemory.free(this.bytes)
  }
}

/** The dynamic table of one direction of a connection (RFC 7541, 2.3.2 and 4): the newest entry is the first. */
import { type HeaderField, staticTable } from "./StaticTable.ts"

/** Size of a table before its settings have arrived, in bytes. */
export const defaultTableSize = 4096

/** Size of an entry beside its name and value, in bytes (RFC 7541, 4.1). */
const entryOverhead = 32

export const sizeOf = ({ name, value }: HeaderField): number => name.length + value.length + entryOverhead

export class DynamicTable {
  /** Increases with each change, so that callers can cache what depends on the content. */
  version = 0
  /** The newest entry last. */
  #entries: Array<HeaderField> = []
  /** Evicted entries at the start of the array, which are removed together. */
  #evicted = 0
  #size = 0
  #maxSize = defaultTableSize

  get maxSize(): number {
    return this.#maxSize
  }

  /** Total size of the entries, in bytes. */
  get size(): number {
    return this.#size
  }

  get length(): number {
    return this.#entries.length - this.#evicted
  }

  /** The field with an index of HPACK: first the static table, then this one. */
  at(index: number): HeaderField | undefined {
    if (index <= staticTable.length) return staticTable[index - 1]
    const position = this.#entries.length - (index - staticTable.length)
    return position < this.#evicted ? undefined : this.#entries[position]
  }

  /** The index of the newest equal field; undefined if there is none. */
  indexOf(name: string, value: string): number | undefined {
    for (let position = this.#entries.length - 1; position >= this.#evicted; position--) {
      const entry = this.#entries[position]
      if (entry?.name === name && entry.value === value) return staticTable.length + this.#entries.length - position
    }
    return undefined
  }

  /** Adds a field. A field that is larger than the table empties it (RFC 7541, 4.4). */
  add(field: HeaderField): void {
    this.version += 1
    this.#entries.push(field)
    this.#size += sizeOf(field)
    this.#evict()
  }

  resize(maxSize: number): void {
    this.version += 1
    this.#maxSize = maxSize
    this.#evict()
  }

  #evict(): void {
    while (this.#size > this.#maxSize) {
      const oldest = this.#entries[this.#evicted]
      this.#evicted += 1
      this.#size -= oldest === undefined ? this.#size : sizeOf(oldest)
    }
    // Moving the rest at each eviction would make large tables quadratic.
    if (this.#evicted * 2 < this.#entries.length) return
    this.#entries = this.#entries.slice(this.#evicted)
    this.#evicted = 0
  }
}

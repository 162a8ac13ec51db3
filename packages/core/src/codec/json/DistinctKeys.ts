/**
 * Refuses duplicate keys of a JSON object. Some readers take the first of their values and others the last, so a
 * gateway could understand a request differently.
 */
import type { JsonReader } from "./JsonReader.ts"

/** Maximum number of unknown keys of an object. Parameters and inputs have lower limits. */
const maxKeys = 8192

/** The keys of one object that have been read. JsonMembers.ts has a cheaper form for known keys. */
export class DistinctKeys {
  #first: string | undefined
  /** Most objects have no second one. */
  #others: Set<string> | undefined

  /** Adds the key before the reader's position. Throws if the object has it already, or has too many. */
  add(reader: JsonReader, key: string): void {
    if (this.#first === undefined) {
      this.#first = key
      return
    }
    const others = (this.#others ??= new Set())
    if (key === this.#first || others.has(key)) refuseDuplicate(reader, key)
    if (others.size === maxKeys - 1) reader.refuse(`more than ${maxKeys} members`)
    others.add(key)
  }
}

/** Throws for a key that its object has already. */
export const refuseDuplicate = (reader: JsonReader, key: string): never => {
  const name = key.length > 40 ? `${key.slice(0, 40)}…` : key
  return reader.refuse(`Duplicate object member '${name}'`)
}

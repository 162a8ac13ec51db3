/**
 * Headers of the data socket: the number of an execution, and fields that are often the same text again, such as
 * `{"x":17,"r":[{"o":[…]}]}`. Each text of fields is parsed once, as long as few different ones come.
 */
import * as Header from "./Header.ts"

export interface ExecutionHeader {
  readonly execution: number
  /** Shared with other frames of the same text. */
  readonly fields: Header.Header
}

const prefix = '{"x":'
const maxKnown = 128
/** Characters of a text that is kept. */
const maxLength = 2048

export class ExecutionHeaderReader {
  readonly #known = new Map<string, Header.Header>()

  /** @throws Error if the text is not a JSON object whose first field is the number of an execution */
  read(text: string): ExecutionHeader {
    const end = text.indexOf(",", prefix.length)
    const execution = end > prefix.length && text.startsWith(prefix) ? Number(text.slice(prefix.length, end)) : NaN
    if (!Number.isSafeInteger(execution)) throw new Error("a header does not begin with the number of an execution")
    const rest = text.slice(end + 1)
    return { execution, fields: this.#known.get(rest) ?? this.#parse(rest) }
  }

  #parse(rest: string): Header.Header {
    const fields = Header.parse(`{${rest}`)
    if (rest.length > maxLength) return fields
    if (this.#known.size >= maxKnown) this.#known.clear()
    this.#known.set(rest, fields)
    return fields
  }
}

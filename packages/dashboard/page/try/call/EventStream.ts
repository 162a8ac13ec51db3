/** Reads server-sent events as they arrive: https://html.spec.whatwg.org/multipage/server-sent-events.html */

/** Longest event, in characters. */
const maxLength = 64 * 1024 * 1024

/** Splits text into events. Returns the data of those that are complete, and keeps the rest. */
export class EventSplitter {
  #rest = ""

  push(text: string): ReadonlyArray<string> {
    const all = this.#rest + text
    // The line end of a "\r\n" may still be on its way.
    const blocks = all.split(/\r\n\r\n|\n\n|\r\r(?!\n)/)
    this.#rest = blocks.pop() ?? ""
    if (this.#rest.length > maxLength) throw new RangeError(`An event has more than ${maxLength} characters.`)
    return blocks.flatMap(dataOf)
  }

  /** The data of a last event that does not end. */
  end(): ReadonlyArray<string> {
    const rest = this.#rest
    this.#rest = ""
    return dataOf(rest)
  }
}

const dataOf = (block: string): ReadonlyArray<string> => {
  const lines = block.split(/\r\n|\n|\r/).filter((line) => line.startsWith("data:"))
  return lines.length === 0 ? [] : [lines.map((line) => line.slice(line[5] === " " ? 6 : 5)).join("\n")]
}

/** The data of the events of a response. */
export async function* events(response: Response): AsyncGenerator<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
  const decoder = new TextDecoder()
  const splitter = new EventSplitter()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      yield* splitter.push(decoder.decode(value, { stream: true }))
    }
    yield* splitter.push(decoder.decode())
    yield* splitter.end()
  } finally {
    await reader.cancel().catch(() => {})
  }
}

/**
 * Writes server-sent events of one response, those of a turn of the event loop together: a write costs more than an
 * event. HttpGenerate.ts decides what the events say.
 */
import type { Template, TemplateText } from "@nereid/core/internal/codec/generate/GeneratedTexts"
import { isClosed, type OutgoingResponse } from "../port/HttpExchange.ts"

/** The data of an event: text, the text of a template, or UTF-8. */
export type Document = string | TemplateText | Uint8Array

/** Characters of events that wait for the end of the turn; more are written at once. */
const maxWaiting = 16 * 1024

export class EventStream {
  readonly #response: OutgoingResponse
  /** Events that wait, without `#texts`. */
  #events = ""
  /** The last events that wait, as texts of one template: one join is faster than many of V8's concatenations. */
  #texts: Array<string> = []
  #template: Template | undefined
  /** Characters of `#events` and `#texts`, including the JSON around the texts. */
  #size = 0
  #hasRoom = true
  #isFlushing = false

  constructor(response: OutgoingResponse) {
    this.#response = response
    response.on("drain", () => (this.#hasRoom = true))
  }

  /** Adds an event. Returns whether the client can take another one now; otherwise the response emits `drain`. */
  write(document: Document): boolean {
    if (typeof document === "string") this.#add(plain, document)
    else if ("template" in document) this.#add(document.template, document.text)
    else if (document.length < maxWaiting) this.#add(plain, utf8(document))
    else this.#writeLarge(document)
    if (this.#size >= maxWaiting) this.#flush()
    else if (!this.#isFlushing) this.#flushLater()
    return this.#hasRoom
  }

  /** Ends the response, after the events so far. */
  end(): void {
    const events = this.#take()
    if (events === "") this.#response.end()
    else this.#response.end(chunkOf(events))
  }

  #add(template: Template, text: string): void {
    if (template !== this.#template) {
      this.#join()
      this.#template = template
    }
    this.#texts.push(text)
    this.#size += start.length + template.before.length + text.length + template.after.length + end.length
  }

  /** Writes a large document as bytes, between its neighbors. */
  #writeLarge(document: Uint8Array): void {
    this.#join()
    this.#events += start
    this.#flush()
    if (!isClosed(this.#response)) this.#response.write(document)
    this.#events = end
    this.#flush()
  }

  #join(): void {
    if (this.#template === undefined) return
    const [before, after] = [start + this.#template.before, this.#template.after + end]
    // Without a concatenation, all characters are copied once.
    this.#texts[0] = before + this.#texts[0]
    this.#texts[this.#texts.length - 1] += after
    this.#events += this.#texts.join(after + before)
    this.#template = undefined
    this.#texts = []
  }

  #flushLater(): void {
    this.#isFlushing = true
    process.nextTick(() => {
      this.#isFlushing = false
      this.#flush()
    })
  }

  #flush(): void {
    const events = this.#take()
    if (events !== "" && !isClosed(this.#response)) this.#hasRoom = this.#response.write(chunkOf(events))
  }

  /** Removes and returns the pending events. */
  #take(): string {
    this.#join()
    const events = this.#events
    this.#events = ""
    this.#size = 0
    return events
  }
}

/**
 * A string if it is ASCII, which is written with less work. Any other one is bytes: where a string waits, Node's
 * response counts bytes and its socket characters, and "drain" may never come.
 */
const chunkOf = (text: string): string | Uint8Array =>
  Buffer.byteLength(text) === text.length ? text : Buffer.from(text)

/** Template of a document that shares no JSON with others. */
const plain: Template = { before: "", after: "" }

const start = "data: "
const end = "\n\n"

const utf8 = ({ buffer, byteOffset, byteLength }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("utf8")

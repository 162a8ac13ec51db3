/**
 * Parses the replies on an HTTP/1.1 connection (RFC 9112): bodies with a length, in chunks, or until the connection
 * closes. Bodies are counted, and kept only on request. Requests must be GET or POST.
 */
export interface HttpReply {
  readonly status: number
  /** Lines as they came, the status line first. */
  readonly head: string
  /** Bytes of the body. */
  readonly length: number
  /** Empty where it was not wanted; of an error its first 64 KB. */
  readonly body: Buffer
  /** Whether the connection can be reused. */
  readonly keepsAlive: boolean
}

interface Head {
  readonly bytes: Buffer
  readonly text: string
  readonly status: number
  readonly keepsAlive: boolean
  /** Length of the body in bytes, or how its end is found. */
  readonly length: number | "chunks" | "end"
}

/** Bytes of a head, and of an error's body, that are read at most. */
const maxHeadBytes = 65_536

const noBytes = Buffer.alloc(0)

export class ReplyReader {
  readonly #wantsBody: boolean
  readonly #onReply: (reply: HttpReply) => void
  #rest: Buffer = noBytes
  #head: Head | undefined
  /** The head that came last: most are the same. */
  #known: Head | undefined
  /** Bytes of the body, or of the chunk, that are to come. */
  #left = 0
  /** Next part of a chunked body. */
  #next: "size" | "data" | "line end" | "trailers" = "size"
  #length = 0
  readonly #bodyParts: Array<Buffer> = []
  #bodyLength = 0

  constructor(wantsBody: boolean, onReply: (reply: HttpReply) => void) {
    this.#wantsBody = wantsBody
    this.#onReply = onReply
  }

  /** Whether no byte of the next reply has arrived. */
  get idle(): boolean {
    return this.#head === undefined && this.#rest.length === 0
  }

  /** Reads bytes. Returns an error message if they are not HTTP/1.1; nothing more can be read after that. */
  read(chunk: Buffer): string | undefined {
    let bytes: Buffer = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    this.#rest = noBytes
    while (bytes.length > 0) {
      if (this.#head === undefined) {
        const end = bytes.indexOf("\r\n\r\n")
        if (end < 0) {
          if (bytes.length > maxHeadBytes) return `the response head has more than ${maxHeadBytes} bytes`
          break
        }
        const head = this.#readHead(bytes.subarray(0, end))
        if (typeof head === "string") return head
        bytes = bytes.subarray(end + 4)
        // 100 to 199 announce the reply and are not it.
        if (head.status < 200) continue
        this.#begin(head)
      } else if (this.#head.length === "chunks") {
        const consumed = this.#readChunked(bytes)
        if (typeof consumed === "string") return consumed
        if (consumed === undefined) break
        bytes = consumed
      } else {
        bytes = this.#take(bytes)
        if (this.#left === 0) this.#finish()
      }
      // Requests go one at a time, so nothing follows a reply.
      if (this.#head === undefined && bytes.length > 0) return "more than one response to a request"
    }
    // A view on what is read, which is overwritten later.
    if (bytes.length > 0) this.#rest = Buffer.from(bytes)
    return undefined
  }

  /** The connection has ended: the end of a reply that has no other; whether there was one. */
  end(): boolean {
    if (this.#head?.length !== "end") return false
    this.#finish()
    return true
  }

  #readHead(bytes: Buffer): Head | string {
    if (this.#known?.bytes.equals(bytes) === true) return this.#known
    const text = bytes.toString("latin1")
    const [, version, code] = /^HTTP\/1\.([01]) (\d{3})(?: |\r\n|$)/.exec(text) ?? []
    if (code === undefined) return `not an HTTP/1.1 response: ${JSON.stringify(text.slice(0, 40))}`
    const status = Number(code)
    const connection = header(text, "connection")?.toLowerCase() ?? ""
    const persists = version === "1" ? !connection.includes("close") : connection.includes("keep-alive")
    const length = bodyLength(status, text)
    if (length === undefined) return `invalid content-length: ${header(text, "content-length")}`
    this.#known = { bytes: Buffer.from(bytes), text, status, keepsAlive: persists && length !== "end", length }
    return this.#known
  }

  #begin(head: Head): void {
    this.#head = head
    this.#length = 0
    this.#next = "size"
    this.#left = typeof head.length === "number" ? head.length : head.length === "end" ? Infinity : 0
    if (this.#left === 0 && head.length !== "chunks") this.#finish()
  }

  /** Consumes bytes of the body, or of the current chunk, and returns the rest. */
  #take(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.#left)
    this.#left -= part.length
    this.#length += part.length
    const isError = (this.#head?.status ?? 0) >= 300
    if (this.#wantsBody || (isError && this.#bodyLength < maxHeadBytes)) {
      this.#bodyParts.push(Buffer.from(part))
      this.#bodyLength += part.length
    }
    return bytes.subarray(part.length)
  }

  /** Reads part of a chunked body. Returns the rest, an error message, or undefined if more bytes are needed. */
  #readChunked(bytes: Buffer): Buffer | string | undefined {
    if (this.#next === "data") {
      const rest = this.#take(bytes)
      if (this.#left === 0) this.#next = "line end"
      return rest
    }
    const end = bytes.indexOf("\r\n")
    if (end < 0)
      return bytes.length > maxHeadBytes ? `a line of the chunked body has more than ${maxHeadBytes} bytes` : undefined
    const line = bytes.toString("latin1", 0, end)
    if (this.#next === "size") {
      const size = /^([0-9a-f]{1,12})[ \t]*(?:;|$)/i.exec(line)?.[1]
      if (size === undefined) return `invalid chunk size: ${JSON.stringify(line.slice(0, 40))}`
      this.#left = Number.parseInt(size, 16)
      this.#next = this.#left === 0 ? "trailers" : "data"
    } else if (this.#next === "line end") {
      if (end > 0) return "a chunk is longer than its size"
      this.#next = "size"
    } else if (end === 0) this.#finish()
    return bytes.subarray(end + 2)
  }

  #finish(): void {
    const head = this.#head
    if (head === undefined) return
    this.#head = undefined
    const body = this.#bodyParts.length === 0 ? noBytes : Buffer.concat(this.#bodyParts.splice(0))
    this.#bodyLength = 0
    const { status, text, keepsAlive } = head
    this.#onReply({ status, head: text, length: this.#length, body, keepsAlive })
  }
}

/** Returns the body length by RFC 9112, 6.3; undefined if it is invalid. */
const bodyLength = (status: number, head: string): Head["length"] | undefined => {
  if (status < 200 || status === 204 || status === 304) return 0
  if (header(head, "transfer-encoding") !== undefined) return "chunks"
  const length = header(head, "content-length")
  if (length === undefined) return "end"
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/** The value of a header; the name in lower case. */
export const header = (head: string, name: string): string | undefined => {
  for (let start = head.indexOf("\r\n"); start >= 0; start = head.indexOf("\r\n", start + 2)) {
    const from = start + 2
    if (head[from + name.length] !== ":") continue
    if (head.slice(from, from + name.length).toLowerCase() !== name) continue
    const end = head.indexOf("\r\n", from)
    return head.slice(from + name.length + 1, end < 0 ? undefined : end).trim()
  }
  return undefined
}

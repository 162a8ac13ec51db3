/**
 * Records both sides of a connection: the messages that the program of the tested side received, and the frames that it
 * sent. Windows that it opens and the sizes of its frames are left out: an implementation may choose them.
 */
import * as Frame from "../../packages/http2/src/frame/Frame.ts"
import { Flag, Type } from "../../packages/http2/src/frame/Frame.ts"
import { type FieldList, HeaderDecoder } from "../../packages/http2/src/hpack/HeaderDecoder.ts"

/** A message as it arrived, in part or whole. */
export class Message {
  head = ""
  trailers = ""
  /** How it ended: not yet, wholly, or cut off. */
  end: "open" | "whole" | "cut" = "open"
  length = 0
  readonly #parts: Array<Uint8Array> = []

  /** Names and values as the program has them. */
  static fields(headers: object): string {
    return Object.entries(headers)
      .filter(([name]) => name !== "date")
      .map(([name, value]) => `${name}=${Array.isArray(value) ? value.join("|") : value}`)
      .join(" ")
  }

  add(part: Uint8Array): void {
    this.length += part.length
    this.#parts.push(Uint8Array.from(part))
  }

  /** The stream has closed. */
  cut(): void {
    if (this.end === "open") this.end = "cut"
  }

  get body(): Buffer {
    return Buffer.concat(this.#parts)
  }
}

/** Reads the frames that the tested side has sent. */
export class Sent {
  /** Messages by stream. */
  readonly messages = new Map<number, Message>()
  readonly resets = new Map<number, number>()
  goaway: number | undefined
  pings = 0
  settings = 0
  /** Frames that were cut: bytes that are not whole frames. */
  rest = 0
  readonly #decoder = new HeaderDecoder(1e6, (fields: FieldList) => fields)
  #block: { readonly id: number; readonly flags: number; readonly parts: Array<Buffer> } | undefined
  #pending: Buffer = Buffer.alloc(0)
  #skip: number

  constructor(isClient: boolean) {
    this.#skip = isClient ? Frame.preface.length : 0
  }

  read(chunk: Buffer): void {
    let bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    if (this.#skip > 0) {
      const skipped = Math.min(this.#skip, bytes.length)
      this.#skip -= skipped
      bytes = bytes.subarray(skipped)
    }
    let at = 0
    while (bytes.length - at >= Frame.headLength) {
      const end = at + Frame.headLength + bytes.readUIntBE(at, 3)
      if (end > bytes.length) break
      this.#frame(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, Frame.readUint31(bytes, at + 5), bytes.subarray(at + 9, end))
      at = end
    }
    this.#pending = Buffer.from(bytes.subarray(at))
    this.rest = this.#pending.length
  }

  #message(id: number): Message {
    const known = this.messages.get(id)
    if (known !== undefined) return known
    const made = new Message()
    this.messages.set(id, made)
    return made
  }

  #frame(type: number, flags: number, id: number, payload: Buffer): void {
    if (type === Type.DATA) {
      this.#message(id).add(payload)
      if ((flags & Flag.END_STREAM) !== 0) this.#message(id).end = "whole"
    } else if (type === Type.HEADERS) {
      this.#block = { id, flags, parts: [payload] }
      if ((flags & Flag.END_HEADERS) !== 0) this.#endBlock()
    } else if (type === Type.CONTINUATION) {
      this.#block?.parts.push(payload)
      if ((flags & Flag.END_HEADERS) !== 0) this.#endBlock()
    } else if (type === Type.RST_STREAM) this.resets.set(id, Frame.readUint32(payload, 0))
    else if (type === Type.GOAWAY) this.goaway = Frame.readUint32(payload, 4)
    else if (type === Type.PING && (flags & Flag.ACK) !== 0) this.pings += 1
    else if (type === Type.SETTINGS && (flags & Flag.ACK) !== 0) this.settings += 1
  }

  #endBlock(): void {
    const block = this.#block
    if (block === undefined) return
    this.#block = undefined
    const list = this.#decoder.decode(Buffer.concat(block.parts))
    const fields: Array<string> = []
    for (let index = 0; index < list.length; index += 2) {
      if (list[index] !== "date") fields.push(`${list[index]}=${list[index + 1]}`)
    }
    const message = this.#message(block.id)
    if (message.head === "") message.head = fields.join(" ")
    else message.trailers = fields.join(" ")
    if ((block.flags & Flag.END_STREAM) !== 0) message.end = "whole"
  }
}

/**
 * Reads the entries of a tar archive one by one: ustar, with the long names of pax and of GNU. EnvironmentArchive.ts
 * decides what to write. No library: archives of environments have files, folders and links only, and each entry is
 * checked here and there in any case.
 */

export interface TarEntry {
  readonly path: string
  readonly type: "file" | "folder" | "symlink" | "hardlink"
  /** Permission bits. */
  readonly mode: number
  readonly size: number
  /** Target of a link. */
  readonly target: string
  /** Contents of a file. Must be read before the next entry, or are skipped. */
  readonly contents: AsyncGenerator<Uint8Array>
}

const blockLength = 512

/** Bytes of a long name, or of the records of one pax header. */
const maxExtension = 1024 * 1024

const types: Readonly<Record<string, TarEntry["type"] | undefined>> = {
  "\0": "file",
  "0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "folder",
}

/** Names and sizes from the entries before the one that they are for. */
interface Extension {
  path?: string
  target?: string
  size?: number
}

/** @throws Error if it is not such an archive, or has an entry of another type */
export const entries = async function* (source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const bytes = new ByteReader(source)
  let extension: Extension = {}
  for (;;) {
    const header = await bytes.take(blockLength)
    if (header === undefined || header.every((byte) => byte === 0)) return
    checkSum(header)
    const size = extension.size ?? number(header, 124, 12)
    const type = String.fromCharCode(header[156] ?? 0)
    if (type === "x" || type === "L" || type === "K" || type === "g") {
      if (size > maxExtension) throw new Error(`an archive has a header of ${size} bytes`)
      const contents = (await bytes.take(padded(size)))?.subarray(0, size)
      if (contents === undefined) throw new Error("the archive is cut off")
      if (type === "L") extension.path = text(contents, 0, size)
      else if (type === "K") extension.target = text(contents, 0, size)
      else if (type === "x") extension = { ...extension, ...paxRecords(contents) }
      continue
    }
    const known = types[type]
    if (known === undefined) throw new Error(`the archive has an entry of type ${JSON.stringify(type)}`)
    const length = known === "file" ? size : 0
    const contents = bytes.contents(length)
    yield {
      path: extension.path ?? ustarPath(header),
      type: known,
      mode: number(header, 100, 8) & 0o777,
      size: length,
      target: extension.target ?? text(header, 157, 100),
      contents,
    }
    // The contents that the caller has not read.
    for await (const _ of contents);
    await bytes.skip(padded(length) - length)
    extension = {}
  }
}

const padded = (size: number): number => Math.ceil(size / blockLength) * blockLength

const text = (bytes: Uint8Array, from: number, length: number): string => {
  const field = bytes.subarray(from, from + length)
  const end = field.indexOf(0)
  return Buffer.from(end < 0 ? field : field.subarray(0, end)).toString("utf8")
}

const ustarPath = (header: Uint8Array): string => {
  const name = text(header, 0, 100)
  const prefix = text(header, 257, 5) === "ustar" && header[263] !== 0x20 ? text(header, 345, 155) : ""
  return prefix === "" ? name : `${prefix}/${name}`
}

/** An octal number, or of GNU a binary one. */
const number = (header: Uint8Array, from: number, length: number): number => {
  if (((header[from] ?? 0) & 0x80) !== 0) {
    let value = (header[from] ?? 0) & 0x7f
    for (let index = from + 1; index < from + length; index++) value = value * 256 + (header[index] ?? 0)
    if (Number.isSafeInteger(value)) return value
    throw new Error("the archive has a number that is too large")
  }
  const digits = text(header, from, length).trim()
  if (!/^[0-7]*$/.test(digits)) throw damaged()
  return digits === "" ? 0 : Number.parseInt(digits, 8)
}

const checkSum = (header: Uint8Array): void => {
  let sum = 0
  for (let index = 0; index < blockLength; index++) sum += index >= 148 && index < 156 ? 32 : (header[index] ?? 0)
  if (sum !== number(header, 148, 8)) throw damaged()
}

const damaged = () => new Error("it is not a tar archive, or it is damaged")

/** Records `<length> <key>=<value>\n`. */
const paxRecords = (bytes: Uint8Array): Extension => {
  const extension: Extension = {}
  for (let offset = 0; offset < bytes.length;) {
    const space = bytes.indexOf(0x20, offset)
    const length = Number(text(bytes, offset, space - offset))
    if (space < 0 || !Number.isSafeInteger(length) || length <= 0 || offset + length > bytes.length) {
      throw new Error("the archive has a wrong pax header")
    }
    const record = Buffer.from(bytes.subarray(space + 1, offset + length - 1)).toString("utf8")
    const equals = record.indexOf("=")
    const value = record.slice(equals + 1)
    const key = record.slice(0, equals)
    if (key === "path") extension.path = value
    if (key === "linkpath") extension.target = value
    if (key === "size") {
      if (!/^\d{1,15}$/.test(value)) throw new Error("the archive has a wrong pax header")
      extension.size = Number(value)
    }
    offset += length
  }
  return extension
}

/** Bytes of chunks, in other portions. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #chunk: Uint8Array = new Uint8Array(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Undefined at the end. */
  async take(length: number): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      const part = await this.#some(length - filled)
      if (part === undefined) {
        if (filled === 0) return undefined
        throw new Error("the archive is cut off")
      }
      bytes.set(part, filled)
      filled += part.length
    }
    return bytes
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.contents(length));
  }

  async *contents(length: number): AsyncGenerator<Uint8Array> {
    for (let left = length; left > 0;) {
      const part = await this.#some(left)
      if (part === undefined) throw new Error("the archive is cut off")
      left -= part.length
      yield part
    }
  }

  async #some(most: number): Promise<Uint8Array | undefined> {
    while (this.#chunk.length === 0) {
      const next = await this.#source.next()
      if (next.done === true) return undefined
      this.#chunk = next.value
    }
    const part = this.#chunk.subarray(0, most)
    this.#chunk = this.#chunk.subarray(part.length)
    return part
  }
}

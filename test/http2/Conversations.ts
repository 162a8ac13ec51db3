/**
 * Random frames of a peer that keeps to the protocol: messages of any kind between settings, pings, window updates,
 * priorities and resets, with padding, and header blocks in any number of frames.
 */
import type { Random } from "../../packages/http2/src/connection/Mutations.fixture.ts"
import * as Frame from "../../packages/http2/src/frame/Frame.ts"
import { Flag, Setting, Type } from "../../packages/http2/src/frame/Frame.ts"
import { HeaderEncoder, HeaderTemplate } from "../../packages/http2/src/hpack/HeaderEncoder.ts"
import { limits, requests } from "./Sides.ts"

/** Bytes of data in all frames, so that no window has to be awaited. */
const maxData = limits.streamWindow

interface Open {
  readonly id: number
  isEnded: boolean
}

/** Frames that both sides may send. */
abstract class Writer {
  readonly frames: Array<Buffer> = []
  protected readonly random: Random
  protected readonly encoder = new HeaderEncoder()
  protected readonly open: Array<Open> = []
  #data = 0

  constructor(random: Random) {
    this.random = random
  }

  /** Begins a message. */
  protected abstract begin(): void

  /** A random frame, or several that belong together. */
  step(): void {
    const { random } = this
    const stream = this.open.length > 0 ? random.of(this.open) : undefined
    switch (random.below(14)) {
      case 0:
      case 1:
      case 2:
        return this.begin()
      case 3:
      case 4:
      case 5:
      case 6:
        if (stream !== undefined && !stream.isEnded) this.#body(stream)
        return
      case 7:
        if (stream !== undefined && !stream.isEnded) this.#trailers(stream)
        return
      case 8:
        if (stream === undefined || random.below(3) > 0) return
        this.add(Type.RST_STREAM, 0, stream.id, number(random.of([8, 5, 2])))
        return void this.open.splice(this.open.indexOf(stream), 1)
      case 9:
        return this.#window(random.of([0, stream?.id ?? 0]))
      case 10:
        return void this.frames.push(Frame.settings([this.#setting()]))
      case 11:
        return this.add(Type.PING, 0, 0, Buffer.alloc(8, random.below(256)))
      case 12:
        return this.add(Type.PRIORITY, 0, random.of([1, 3, 5, 99]), Buffer.of(0, 0, 0, 0, random.below(256)))
      default:
        return this.add(random.of([0xb, 0x20, 0xfe]), random.below(256), random.of([0, 1]), Buffer.alloc(5))
    }
  }

  /** Opens all windows, so that the messages of the other side are complete. */
  finish(): void {
    this.frames.push(Frame.settings([[Setting.INITIAL_WINDOW_SIZE, 2 ** 20]]), Frame.windowUpdate(0, 2 ** 27))
  }

  protected add(type: number, flags: number, id: number, payload: Uint8Array = none): void {
    this.frames.push(Frame.encode(type, flags, id, payload))
  }

  protected field(): ReadonlyArray<string> {
    const { random } = this
    return [
      random.of(["x-a", "x-b", "cookie", "set-cookie", "accept", "grpc-timeout", "te2"]),
      random.of(["", "1", "a,b", "v".repeat(random.of([10, 300, 2000]))]),
    ]
  }

  protected fields(): ReadonlyArray<string> {
    return Array.from({ length: this.random.below(4) }, () => this.field()).flat()
  }

  protected block(id: number, block: Uint8Array, flags: number): void {
    const { random } = this
    const parts = random.of([1, 1, 1, 2, 3])
    const cut = Math.ceil(block.length / parts)
    for (let part = 0; part < parts; part++) {
      const isLast = part === parts - 1 ? Flag.END_HEADERS : 0
      const bytes = block.subarray(part * cut, (part + 1) * cut)
      if (part > 0) {
        this.add(Type.CONTINUATION, isLast, id, bytes)
        continue
      }
      const hasPriority = random.below(4) === 0
      const priority = hasPriority ? Buffer.of(0, 0, 0, 0, random.below(256)) : none
      this.#padded(Type.HEADERS, flags | isLast | (hasPriority ? Flag.PRIORITY : 0), id, priority, bytes)
    }
  }

  #padded(type: number, flags: number, id: number, ...parts: ReadonlyArray<Uint8Array>): void {
    const { random } = this
    if (random.below(3) > 0) return this.add(type, flags, id, Buffer.concat(parts))
    const padding = random.of([0, 1, 10, 255])
    const payload = Buffer.concat([Buffer.of(padding), ...parts, Buffer.alloc(padding)])
    this.add(type, flags | Flag.PADDED, id, payload)
    if (type === Type.DATA) this.#data += padding + 1
  }

  #body(stream: Open): void {
    const { random } = this
    const length = random.of([0, 1, 10, 1000, 16_000])
    if (this.#data + length + 256 > maxData) return
    this.#data += length
    stream.isEnded = random.below(3) === 0
    const bytes = Buffer.alloc(length, random.below(256))
    this.#padded(Type.DATA, stream.isEnded ? Flag.END_STREAM : 0, stream.id, bytes)
  }

  #trailers(stream: Open): void {
    stream.isEnded = true
    this.block(stream.id, this.encoder.encode(undefined, ["x-end", "1", ...this.field()]), Flag.END_STREAM)
  }

  #window(id: number): void {
    this.frames.push(Frame.windowUpdate(id, this.random.of([1, 100, 65_535, 2 ** 20])))
  }

  #setting(): readonly [number, number] {
    const { random } = this
    return random.of([
      [Setting.INITIAL_WINDOW_SIZE, random.of([0, 1, 100, 65_535, 2 ** 20])],
      [Setting.MAX_FRAME_SIZE, random.of([16_384, 20_000, 2 ** 24 - 1])],
      [Setting.HEADER_TABLE_SIZE, random.of([0, 100, 4096, 10_000])],
      [Setting.MAX_CONCURRENT_STREAMS, random.of([0, 1, 100])],
      [Setting.ENABLE_PUSH, 0],
      [0x99, random.below(2 ** 31)],
    ] as const)
  }
}

class ClientWriter extends Writer {
  #nextId = 1
  readonly #templates: ReadonlyArray<HeaderTemplate>

  constructor(random: Random) {
    super(random)
    this.frames.push(Frame.preface, Frame.settings([]))
    this.#templates = paths.map(
      (path) =>
        new HeaderTemplate(
          Object.entries({
            ":method": random.of(["POST", "GET", "PUT"]),
            ":scheme": "http",
            ":path": path,
            ":authority": "localhost",
          }).flat(),
        ),
    )
  }

  override begin(): void {
    const { random } = this
    const id = this.#nextId
    this.#nextId += random.of([2, 2, 2, 4])
    const isEnded = random.below(3) === 0
    const block = this.encoder.encode(random.of(this.#templates), this.fields())
    this.block(id, block, isEnded ? Flag.END_STREAM : 0)
    this.open.push({ id, isEnded })
  }
}

const paths = ["/whole/0", "/whole/10", "/whole/70000", "/early/20", "/early/0", "/reset", "/none"]

class ServerWriter extends Writer {
  readonly #ids = requests.map((_, index) => 2 * index + 1)
  readonly #template: HeaderTemplate

  constructor(random: Random) {
    super(random)
    this.frames.push(Frame.settings([]), Frame.encode(Type.SETTINGS, Flag.ACK, 0, none))
    this.#template = new HeaderTemplate([":status", random.of(["200", "404", "999"]), "x-reply", "1"])
  }

  override begin(): void {
    const { random } = this
    if (this.#ids.length === 0) return
    const [id = 1] = this.#ids.splice(random.below(this.#ids.length), 1)
    if (random.below(4) === 0) this.block(id, this.encoder.encode(undefined, [":status", "103", "x-hint", "1"]), 0)
    const isEnded = random.below(5) === 0
    this.block(id, this.encoder.encode(this.#template, this.fields()), isEnded ? Flag.END_STREAM : 0)
    this.open.push({ id, isEnded })
  }

  override finish(): void {
    super.finish()
    if (this.random.below(4) === 0) this.frames.push(Frame.goaway(2 ** 31 - 1, 0, "leaving"))
  }
}

const none = Buffer.alloc(0)

const number = (value: number): Buffer => {
  const payload = Buffer.alloc(4)
  payload.writeUInt32BE(value)
  return payload
}

const conversation = (writer: Writer, random: Random): Array<Buffer> => {
  for (let steps = 1 + random.below(30); steps > 0; steps--) writer.step()
  writer.finish()
  return writer.frames
}

/** The frames of a client, the first one its preface. */
export const ofClient = (random: Random): Array<Buffer> => conversation(new ClientWriter(random), random)

/** The frames of a server that responds to `requests` of Sides.ts. */
export const ofServer = (random: Random): Array<Buffer> => conversation(new ServerWriter(random), random)

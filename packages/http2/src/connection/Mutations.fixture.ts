/**
 * Connections whose bytes are damaged: recorded ones of a client or a server, with frames that are changed, repeated,
 * swapped, cut, or made up. Whatever arrives, a connection must not throw, must send whole frames, and must have a
 * bounded number of bytes to send.
 */
import * as Frame from "../frame/Frame.ts"
import { HeaderEncoder } from "../hpack/HeaderEncoder.ts"
import { Connection } from "./Connection.ts"
import { noEvents, noStreamEvents, okHead, okTrailers, requestTemplate } from "./Peers.fixture.ts"

/** Random numbers from a seed (mulberry32), so that a failure can be repeated. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** From 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  of<A>(choices: ReadonlyArray<A>): A {
    const choice = choices[this.below(choices.length)]
    if (choice === undefined) throw new Error("there is nothing to choose from")
    return choice
  }
}

const window = 65_535

/** A server that answers, pauses and resets by chance. */
const makeServer = (random: Random): Connection => {
  const server: Connection = new Connection(
    { role: "server", streamWindow: window, connectionWindow: 2 * window, maxConcurrentStreams: 20 },
    {
      ...noEvents,
      onStream: (stream) => {
        stream.handler = {
          ...noStreamEvents,
          onData: (part) => {
            const choice = random.below(20)
            if (choice === 0) server.reset(stream, 8)
            else if (choice === 1) server.pause(stream)
            else if (choice === 2) server.message(stream, okHead, Buffer.from(part), okTrailers)
            else if (choice === 3) server.resume(stream)
            return false
          },
          onEnd: () => server.message(stream, okHead, Buffer.alloc(random.of([0, 10, 10, 5000, 40_000])), okTrailers),
        }
      },
    },
    0,
  )
  return server
}

const makeClient = (random: Random): Connection => {
  const client = new Connection(
    { role: "client", streamWindow: window, connectionWindow: 2 * window, maxConcurrentStreams: 0 },
    noEvents,
    0,
  )
  for (let count = 1 + random.below(4); count > 0; count--) {
    const stream = client.open(noStreamEvents, requestTemplate, ["x-id", String(count)], false)
    if (random.below(3) === 0) client.pause(stream)
    client.data(stream, Buffer.alloc(random.of([1, 50, 50, 5000])))
    client.end(stream)
  }
  return client
}

/** Frames of a connection, each with its head. The first one of a client has the preface. */
const record = (random: Random, role: "client" | "server"): Array<Buffer> => {
  const [client, server] = [makeClient(random), makeServer(random)]
  const bytes: Array<Buffer> = []
  for (let turn = 0; turn < 3; turn++) {
    const there = Buffer.concat(client.take())
    server.receive(there, 0)
    const back = Buffer.concat(server.take())
    client.receive(back, 0)
    bytes.push(role === "client" ? there : back)
  }
  return split(Buffer.concat(bytes), role === "client" ? Frame.preface.length : 0)
}

let recordings: Record<"clients" | "servers", ReadonlyArray<ReadonlyArray<Buffer>>> | undefined

/** The same in each process, and of fixed seeds. */
const recorded = () => {
  if (recordings !== undefined) return recordings
  const seeds = Array.from({ length: 200 }, (_, index) => new Random(-1 - index))
  recordings = {
    clients: seeds.map((random) => record(random, "client")),
    servers: seeds.map((random) => record(random, "server")),
  }
  return recordings
}

/** The frames of some bytes; the last one may be cut. `start`: where the first one begins. */
export const split = (bytes: Buffer, start: number): Array<Buffer> => {
  const frames: Array<Buffer> = start === 0 ? [] : [bytes.subarray(0, start)]
  for (let offset = start; offset + Frame.headLength <= bytes.length;) {
    const end = Math.min(bytes.length, offset + Frame.headLength + bytes.readUIntBE(offset, 3))
    frames.push(Buffer.from(bytes.subarray(offset, end)))
    offset = end
  }
  return frames
}

/** A frame of any type with any payload, often one that its type permits. */
const anyFrame = (random: Random, encoder: HeaderEncoder): Buffer => {
  const stream = random.of([0, 1, 1, 3, 5, 7, 2, 9, random.below(2 ** 31)])
  const type = random.below(11)
  const flags = random.of([0, 1, 4, 5, 8, 0x20, 0x2d, random.below(256)])
  const length = random.of([0, 4, 5, 6, 8, 8, 12, random.below(100), random.below(16_384)])
  if (random.below(4) === 0) {
    const fields = random.of([[":status", "200"], requestTemplate.fields, ["a", "b"], ["content-length", "5"]])
    return Frame.encode(Frame.Type.HEADERS, flags, stream, encoder.encode(undefined, fields))
  }
  const payload = Buffer.alloc(length)
  for (let index = 0; index < Math.min(length, 16); index++)
    payload[index] = random.of([0, 0, 1, 255, random.below(256)])
  return Frame.encode(type, flags, stream, payload)
}

/** Makes one random change. */
export const mutate = (frames: Array<Buffer>, random: Random): void => {
  const at = random.below(frames.length)
  const frame = frames[at]
  if (frame === undefined) return
  switch (random.below(8)) {
    case 0:
      frames.splice(at, 1)
      return
    case 1:
      frames.splice(random.below(frames.length), 0, frame)
      return
    case 2: {
      const other = random.below(frames.length)
      frames[at] = frames[other] ?? frame
      frames[other] = frame
      return
    }
    case 3:
      frames[at] = frame.subarray(0, random.below(frame.length + 1))
      return
    case 4:
    case 5: {
      const changed = Buffer.from(frame)
      changed[random.below(Math.min(changed.length, 30))] = random.below(256)
      frames[at] = changed
      return
    }
    default:
      frames.splice(at, 0, anyFrame(random, new HeaderEncoder()))
  }
}

/** Bytes that a connection may have ready at a time. */
const maxOutput = 2 ** 20

/** Runs one damaged connection. Returns whether it has failed, as most do. */
export const run = (seed: number): boolean => {
  const random = new Random(seed)
  const isServer = random.below(2) === 0
  const frames = [...random.of(isServer ? recorded().clients : recorded().servers)]
  for (let count = 1 + random.below(4); count > 0; count--) mutate(frames, random)
  const bytes = Buffer.concat(frames)
  const victim = isServer ? makeServer(random) : makeClient(random)
  const sent: Array<Buffer> = []
  const flush = () => {
    if (victim.outputSize > maxOutput) throw new Error(`${victim.outputSize} bytes wait to be sent`)
    sent.push(...victim.take())
    victim.pump()
  }
  flush()
  for (let start = 0; start < bytes.length;) {
    const end = Math.min(bytes.length, start + random.of([1, 10, 100, 10_000, 70_000]))
    victim.receive(Buffer.from(bytes.subarray(start, end)), 0)
    flush()
    start = end
  }
  const hasFailed = victim.isOver
  victim.lost()
  if (victim.size > 0) throw new Error(`${victim.size} streams are left over`)
  check(Buffer.concat(sent), isServer)
  return hasFailed
}

/** Throws if the bytes are not whole frames. They may be as long as the damaged settings of the peer allow. */
const check = (bytes: Buffer, isServer: boolean): void => {
  const isWhole = (frame: Buffer) =>
    frame.equals(Frame.preface) || frame.length === Frame.headLength + frame.readUIntBE(0, 3)
  const frames = split(bytes, isServer ? 0 : Frame.preface.length)
  const length = frames.reduce((sum, frame) => sum + frame.length, 0)
  if (length !== bytes.length || !frames.every(isWhole)) throw new Error("a frame was sent in part")
}

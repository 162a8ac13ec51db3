/**
 * One connection to both implementations: random frames that keep to the protocol, or that were damaged. Both must make
 * the same of them, and `@nereid/http2` the same of any cuts.
 */
import { mutate, Random, split } from "../../packages/http2/src/connection/Mutations.fixture.ts"
import * as Frame from "../../packages/http2/src/frame/Frame.ts"
import * as Conversations from "./Conversations.ts"
import * as Differences from "./Differences.ts"
import { NodeClient, NodeServer } from "./NodeSides.ts"
import { OwnClient, OwnServer } from "./OwnSides.ts"
import { settle, type Side } from "./Sides.ts"

/** The side that is tested; the frames are those of its peer. */
export type Role = "client" | "server"

const sides = {
  server: { own: () => new OwnServer(), node: () => new NodeServer(), frames: Conversations.ofClient },
  client: { own: () => new OwnClient(), node: () => new NodeClient(), frames: Conversations.ofServer },
} as const

export interface Result {
  readonly wrong: ReadonlyArray<string>
  /** Whether the two agree in all. */
  readonly isEqual: boolean
}

/** Bytes of a peer, frame by frame. A last frame that is cut is completed, and a ping requires a verdict on it. */
const conversation = (role: Role, isDamaged: boolean, random: Random): ReadonlyArray<Buffer> => {
  const frames = sides[role].frames(random)
  if (isDamaged) {
    // The preface of a client stays: another one is not HTTP/2.
    const kept = role === "server" ? frames.splice(0, 1) : []
    for (let count = 1 + random.below(3); count > 0; count--) mutate(frames, random)
    // Those that only nghttp2 knows are left out: ALTSVC, ORIGIN and PRIORITY_UPDATE.
    const read = split(Buffer.concat(frames), 0).filter((frame) => ![10, 12, 16].includes(frame[3] ?? 0))
    frames.splice(0, frames.length, ...kept, ...read)
    const last = frames.at(-1)
    if (last !== undefined && last !== kept[0]) frames[frames.length - 1] = complete(last)
  }
  return [...frames, Frame.encode(Frame.Type.PING, 0, 0, Buffer.alloc(8))]
}

const complete = (frame: Buffer): Buffer => {
  const head = Buffer.concat([frame, Buffer.alloc(Math.max(0, Frame.headLength - frame.length))])
  const length = Math.min(head.readUIntBE(0, 3), Frame.defaults.frameSize)
  return Buffer.concat([head, Buffer.alloc(Math.max(0, Frame.headLength + length - head.length))])
}

/** Turns of the event loop for each frame, and for what is still to come when the two differ. */
const [turns, moreTurns] = [3, 200]

/** Returns what differs, and must not. */
export const run = async (role: Role, isDamaged: boolean, seed: number): Promise<Result> => {
  const random = new Random(seed)
  const frames = conversation(role, isDamaged, random)
  const own = sides[role].own()
  const node = sides[role].node()
  try {
    if (role === "client") await settle(turns)
    for (const frame of frames) {
      own.receive(Buffer.from(frame))
      node.receive(frame)
      await settle(turns)
    }
    forget(resetStreams(frames), own, node)
    let found = Differences.between(own, node)
    for (let turn = 0; turn < moreTurns && found.length > 0; turn++) {
      await settle(1)
      found = Differences.between(own, node)
    }
    const wrong = [...Differences.forbidden(found, isDamaged), ...cuts(role, frames, isDamaged, own, random)]
    return { wrong: [...new Set(wrong)], isEqual: found.length === 0 }
  } finally {
    own.close()
    node.close()
  }
}

/** The differences for bytes that are cut at two random places, or one byte at a time. */
const cuts = (
  role: Role,
  frames: ReadonlyArray<Buffer>,
  isDamaged: boolean,
  whole: Side,
  random: Random,
): ReadonlyArray<string> => {
  const bytes = Buffer.concat(frames)
  const isEach = bytes.length < 1000 && random.below(4) === 0
  const places = isEach
    ? Array.from({ length: bytes.length }, (_, index) => index)
    : [random.below(bytes.length), random.below(bytes.length)].toSorted((one, other) => one - other)
  const side = sides[role].own()
  let start = 0
  for (const end of [...places, bytes.length]) {
    if (end > start) side.receive(Buffer.from(bytes.subarray(start, end)))
    start = end
  }
  forget([...resetStreams(frames), ...whole.sent.resets.keys()], side, whole)
  // With its response, a stream has closed. Whether the response was sent before a further block depends on the cuts.
  if ([side.reason, whole.reason].includes("a header block of a closed stream")) return []
  // Damaged settings may open a window and shut it again before anything is sent.
  const found = Differences.between(side, whole, isDamaged)
  if (side.reason !== whole.reason) found.push(`${side.reason} and ${whole.reason}`)
  side.close()
  return found.map((difference) => `with cuts: ${difference}`)
}

/** How much of a message is sent before its stream is reset depends on the moment. */
const forget = (streams: ReadonlyArray<number>, ...sides: ReadonlyArray<Side>): void => {
  for (const { sent } of sides) for (const id of streams) sent.messages.delete(id)
}

const resetStreams = (frames: ReadonlyArray<Buffer>): ReadonlyArray<number> =>
  frames.filter((frame) => frame[3] === Frame.Type.RST_STREAM).map((frame) => Frame.readUint31(frame, 5))

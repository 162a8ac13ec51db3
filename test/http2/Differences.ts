/** The differences between what two implementations have made of the same bytes, and those that are permitted. */
import { ErrorCode } from "../../packages/http2/src/frame/ErrorCode.ts"
import type { Message } from "./Seen.ts"
import type { Side } from "./Sides.ts"

/**
 * Differences for a peer that breaks the protocol: RFC 9113 leaves a choice there, or nghttp2 permits more than it.
 */
const permitted: ReadonlyArray<readonly [difference: RegExp, reason: string]> = [
  [/^only own has ended: a header block of a closed stream$/, "nghttp2 ignores the frame, unlike RFC 9113, 5.1"],
  [/^resets 5 and (?:none|\d+)$/, "the same for data"],
  [/^only own has ended: (?:PRIORITY of a wrong stream|a stream depends on itself)$/, "nghttp2 ignores PRIORITY"],
  [/^only own has ended: a (?:padded DATA |DATA )?frame (?:has|of|is) /, "nghttp2 reads no frame that it ignores"],
  [/^only own has ended: PUSH_PROMISE is not allowed$/, "nghttp2 ignores it until its settings are acknowledged"],
  [/^only own has ended: its last stream was refused$/, "after GOAWAY; nghttp2 drops some invalid fields"],
  [/^node takes a message that was cut off for a whole one$/, "node:http2 ends a stream that is reset with NO_ERROR"],
  [/^only node has ended: [1-9]/, "nghttp2 ends the connection, RFC 9113 does not require it: see conformance.md"],
  [/^only node has ended: (?:0|without a code)/, "node:http2 ends the session with GOAWAY, or for a stream error"],
  [/^resets \w+ and \w+ for fields$/, "nghttp2 drops some invalid fields, and checks content-length in trailers"],
]

/** nghttp2 does not send the trailers of a message while the window of the connection is shut. */
const withoutEnd = "node lacks the end of a message"

/** Without those that are permitted. */
export const forbidden = (differences: ReadonlyArray<string>, isDamaged: boolean): ReadonlyArray<string> =>
  differences.filter(
    (difference) =>
      difference !== withoutEnd && !(isDamaged && permitted.some(([pattern]) => pattern.test(difference))),
  )

/** Whether one body is the beginning of the other one. */
const isStart = (one: Buffer, other: Buffer): boolean => {
  const length = Math.min(one.length, other.length)
  return one.compare(other, 0, length, 0, length) === 0
}

/** `isExact`: neither connection has ended. Otherwise one message may have more of the same. */
const agree = (one: Message, other: Message, isExact: boolean): boolean => {
  if (one.head !== other.head && (isExact || (one.head !== "" && other.head !== ""))) return false
  if (isExact || (one.end === "whole" && other.end === "whole")) {
    return one.end === other.end && one.trailers === other.trailers && one.body.equals(other.body)
  }
  return isStart(one.body, other.body)
}

const lacksEnd = (own: Message, node: Message): boolean =>
  own.head === node.head && own.body.equals(node.body) && own.end === "whole" && node.end === "open"

const isCut = (own: Message, node: Message): boolean =>
  own.head === node.head && own.body.equals(node.body) && own.end === "cut" && node.end === "whole"

/** Differences between messages of the same streams, but those of `refused`. */
const compare = (
  what: "received" | "sent",
  ours: ReadonlyMap<number, Message>,
  theirs: ReadonlyMap<number, Message>,
  isExact: boolean,
  refused: ReadonlySet<number>,
): ReadonlyArray<string> =>
  [...new Set([...ours.keys(), ...theirs.keys()]).difference(refused)].flatMap((id) => {
    const [one, other] = [ours.get(id), theirs.get(id)]
    if (one === undefined || other === undefined) {
      return isExact ? [`only ${one === undefined ? "node" : "own"} has a message ${what}`] : []
    }
    // Streams share the window of the connection in any order; `amount` compares what they have sent in all.
    const isShared = what === "sent" && one.head === other.head && one.length !== other.length
    if (agree(one, other, isExact && !isShared)) return []
    if (what === "sent" && lacksEnd(one, other)) return [withoutEnd]
    if (what === "received" && isCut(one, other)) return ["node takes a message that was cut off for a whole one"]
    return [`another message ${what}`]
  })

/** Bytes of all messages that were sent, but those of `refused`. */
const amount = (messages: ReadonlyMap<number, Message>, refused: ReadonlySet<number>): number =>
  [...messages].reduce((total, [id, { length }]) => total + (refused.has(id) ? 0 : length), 0)

/** Whether both have sent as much, or have used as much of the window that streams share with those of `refused`. */
const areEqualAmounts = (own: Side, node: Side, refused: ReadonlySet<number>): boolean =>
  [refused, new Set<number>()].some(
    (without) => amount(own.sent.messages, without) === amount(node.sent.messages, without),
  )

/** Codes with which a stream is reset for its header fields. */
const ofFields: ReadonlyArray<number | undefined> = [ErrorCode.PROTOCOL_ERROR, ErrorCode.ENHANCE_YOUR_CALM]

/**
 * In short; equal texts for equal causes. `isTimed`: what they have sent in all may differ, with the time of a window.
 */
export const between = (own: Side, node: Side, isTimed = false): Array<string> => {
  const isExact = !own.isOver && !node.isOver
  const found: Array<string> = []
  const refused = new Set<number>()
  for (const id of new Set([...own.sent.resets.keys(), ...node.sent.resets.keys()])) {
    const [one, other] = [own.sent.resets.get(id), node.sent.resets.get(id)]
    const isForFields = ofFields.includes(one) || ofFields.includes(other)
    if (isForFields && (one !== other || !isTimed)) refused.add(id)
    if (isExact && one !== other)
      found.push(`resets ${one ?? "none"} and ${other ?? "none"}${isForFields ? " for fields" : ""}`)
  }
  found.push(...compare("received", own.received, node.received, isExact, refused))
  found.push(...compare("sent", own.sent.messages, node.sent.messages, isExact, refused))
  if (own.isOver !== node.isOver) {
    const reason = own.reason === "" && refused.size > 0 ? "its last stream was refused" : own.reason
    if (own.isOver) found.push(`only own has ended: ${reason.replaceAll(/\d+/g, "N")}`)
    else found.push(`only node has ended: ${node.sent.goaway ?? "without a code"}`)
  }
  if (!isExact) return found
  if (!isTimed && !areEqualAmounts(own, node, refused)) found.push("other amounts sent")
  if (own.sent.pings !== node.sent.pings) found.push("other pings")
  if (own.sent.settings !== node.sent.settings) found.push("other settings")
  return found
}

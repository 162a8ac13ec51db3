/**
 * A message of gRPC whose bytes come in parts: a prefix of five bytes, which tells its length, and the rest. Keeps the
 * parts until the message is whole, within a budget that all calls share.
 */
import { Result } from "effect"
import { GrpcCode } from "@nereid/core/Errors"
import type { ReceiveBudget } from "../port/ReceiveBudget.ts"
import type { GrpcStatus } from "./GrpcStatus.ts"

/** Compressed flag and length. */
export const prefixLength = 5

/** What keeping a part costs beside its bytes, so that single bytes do not come cheaper than they are. */
const partCost = 256

/** A part is a view of what was read from its socket, and keeps all of that; a copy of a small one does not. */
const smallPart = 1 / 8

/** Bytes of the message behind the prefix that these begin with. */
export const messageLength = (bytes: Uint8Array, maxMessageSize: number): Result.Result<number, GrpcStatus> => {
  const [flag = 0, a = 0, b = 0, c = 0, d = 0] = bytes
  const length = a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d
  if (flag === 1) {
    const message = "received a compressed message, but no grpc-encoding says how to decompress it"
    return Result.fail({ code: GrpcCode.INTERNAL, message, tag: "MalformedRequest" })
  }
  if (flag !== 0) {
    const message = `invalid compressed flag ${flag} of a message, expected 0 or 1`
    return Result.fail({ code: GrpcCode.INTERNAL, message, tag: "MalformedRequest" })
  }
  if (length > maxMessageSize) {
    const message = `message too large: ${length} bytes, at most ${maxMessageSize}`
    return Result.fail({ code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "InvalidRequest" })
  }
  return Result.succeed(length)
}

export class MessageParts {
  readonly #budget: ReceiveBudget
  #parts: Array<Uint8Array> = []
  /** Taken from the budget for the parts. */
  #held = 0
  /** Bytes of the parts together. */
  length = 0

  constructor(budget: ReceiveBudget) {
    this.#budget = budget
  }

  /** Keeps a part, or says why not. */
  hold(part: Uint8Array): GrpcStatus | undefined {
    const cost = part.length + partCost
    const message = this.#budget.take(cost)
    if (message !== undefined) return { code: GrpcCode.RESOURCE_EXHAUSTED, message, tag: "QueueFull" }
    this.#held += cost
    this.length += part.length
    const isSmallPart = part.length < part.buffer.byteLength * smallPart
    this.#parts.push(isSmallPart ? new Uint8Array(part) : part)
    return undefined
  }

  /** All of them, and the one that has just come. */
  join(last: Uint8Array): Uint8Array {
    return this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last], this.length + last.length)
  }

  release(): void {
    if (this.#held === 0) return
    this.#parts = []
    this.length = 0
    this.#budget.give(this.#held)
    this.#held = 0
  }
}

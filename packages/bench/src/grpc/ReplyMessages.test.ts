import * as fc from "fast-check"
import { expect, it } from "vitest"
import * as GrpcCall from "./GrpcRequest.ts"
import { MessageReader } from "./ReplyMessages.ts"

it("gives the messages that were framed, or their beginnings, however they are cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 })),
      fc.infiniteStream(fc.integer({ min: 1, max: 50 })),
      fc.constantFrom(0, 10, Infinity),
      (messages, lengths, kept) => {
        const got: Array<unknown> = []
        const reader = new MessageReader(kept, (beginning, length) => {
          got.push({
            whole: beginning.length === length,
            beginning: beginning.toString("hex").slice(0, kept * 2),
            length,
          })
        })
        const all = Buffer.concat(messages.map(GrpcCall.frame))
        for (let offset = 0; offset < all.length;) {
          const part = Buffer.from(all.subarray(offset, offset + lengths.next().value))
          expect(reader.read(part)).toBeUndefined()
          // It is overwritten by what comes next.
          part.fill(0xee)
          offset += part.length
        }
        expect(reader.midway).toBe(false)
        expect(got).toMatchObject(
          messages.map((message) => ({
            beginning: Buffer.from(message)
              .toString("hex")
              .slice(0, kept * 2),
            length: message.length,
            ...(message.length <= kept ? { whole: true } : {}),
          })),
        )
      },
    ),
  )
})

it("refuses a compressed message, and knows when one is not all there", () => {
  const reader = new MessageReader(Infinity, () => {})
  expect(reader.read(Buffer.from("0000000002ab", "hex"))).toBeUndefined()
  expect(reader.midway).toBe(true)
  expect(reader.read(Buffer.from("cd", "hex"))).toBeUndefined()
  expect(reader.read(Buffer.from("0100000000", "hex"))).toMatch(/compressed/)
})

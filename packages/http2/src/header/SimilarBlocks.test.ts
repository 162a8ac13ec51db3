/** Blocks that differ from an earlier one in one value give the same as in a connection that has seen none. */
import * as fc from "fast-check"
import { expect, it } from "vitest"
import { type FieldList, HeaderDecoder, type Similar } from "../hpack/HeaderDecoder.ts"
import { HeaderEncoder, HeaderTemplate } from "../hpack/HeaderEncoder.ts"
import { HeaderBlock } from "./HeaderBlock.ts"

const call = [":method", "POST", ":scheme", "http", ":path", "/a", ":authority", "b", "content-type", "c"] as const

/** Blocks of a client whose requests have these fields, each with further ones. */
const blocksOf = (requests: ReadonlyArray<FieldList>): ReadonlyArray<Uint8Array> => {
  const encoder = new HeaderEncoder()
  const template = new HeaderTemplate(call)
  return [[], ...requests].map((added) => new Uint8Array(encoder.encode(template, added)))
}

/** The same of a client that puts no field into the table, and whose requests have no path but these. */
const literalBlocks = (requests: ReadonlyArray<FieldList>): ReadonlyArray<Uint8Array> =>
  [[], ...requests].map((added) =>
    new HeaderEncoder().encode(undefined, [...call.toSpliced(4, 2).slice(0, 6), ...added]),
  )

/** Decodes the blocks, and counts those that were derived from an earlier one. */
const decode = (blocks: ReadonlyArray<Uint8Array>, maxListSize = 65_536) => {
  let derived = 0
  const read = (fields: FieldList, isTooLarge: boolean, similar?: Similar<HeaderBlock>) => {
    if (similar !== undefined) derived += 1
    return new HeaderBlock(fields, isTooLarge, similar)
  }
  const decoder = new HeaderDecoder(maxListSize, read)
  const decoded = blocks.map((block) => {
    const result = decoder.decode(block)
    return { result, problem: result.problem("request") }
  })
  return { derived, blocks: decoded.slice(1) }
}

/** The values that a server takes from a block. */
const summary = (block: HeaderBlock) => ({
  fields: block.fields,
  isTooLarge: block.isTooLarge,
  problem: block.problem("request"),
  trailers: block.problem("trailers"),
  length: block.contentLength,
  headers: { ...block.headers },
})

it("a block that differs in a timeout is not decoded again", () => {
  const { derived, blocks } = decode(blocksOf(["99m", "98m", "98m"].map((timeout) => ["grpc-timeout", timeout])))
  expect(derived).toBe(2)
  expect(blocks.map(({ result }) => result.headers["grpc-timeout"])).toEqual(["99m", "98m", "98m"])
  expect(blocks.map(({ problem }) => problem)).toEqual(["", "", ""])
})

it("a value that comes again and again is remembered", () => {
  const timeouts = [1, 2, 2, 2].map((seconds) => ["grpc-timeout", `${seconds}S`])
  const { derived, blocks } = decode(blocksOf(timeouts))
  expect(derived).toBe(2)
  expect(blocks[3]?.result).toBe(blocks[2]?.result)
})

/** As SETTINGS_MAX_HEADER_LIST_SIZE counts it. */
const sizeOf = (fields: FieldList): number => fields.join("").length + 16 * fields.length

const values = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("", "0", "7", "trailers", "a", "a b", "/a", "é", "long".repeat(9), "\x7f") },
  { weight: 1, arbitrary: fc.string({ maxLength: 40 }) },
)

const names = fc.constantFrom("grpc-timeout", "te", "host", "content-length", ":path", "upgrade", "A", "cookie")

it("any value gives what a new connection reads", () => {
  const requests = fc.array(fc.tuple(values, fc.boolean()), { maxLength: 20 })
  fc.assert(
    fc.property(names, requests, fc.constantFrom(290, 65_536), (name, requests, maxListSize) => {
      const fields = requests.map(([value, isLast]) => [
        name,
        value,
        ...(isLast ? [] : ["accept-encoding", "gzip, deflate"]),
      ])
      const { blocks } = decode(name === ":path" ? literalBlocks(fields) : blocksOf(fields), maxListSize)
      const alone = blocks.map(({ result }) => new HeaderBlock(result.fields, result.isTooLarge))
      expect(blocks.map(({ result }) => summary(result))).toEqual(alone.map(summary))
      const tooLarge = fields.map((added) => sizeOf([...call, ...added]) > maxListSize)
      if (name !== ":path") expect(blocks.map(({ result }) => result.isTooLarge)).toEqual(tooLarge)
    }),
  )
})

it("the fields are those that were encoded", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(names, fc.stringMatching(/^[ -~]{0,20}$/)), { maxLength: 12 }), (requests) => {
      const { blocks } = decode(blocksOf(requests))
      expect(blocks.map(({ result }) => result.fields)).toEqual(requests.map((added) => [...call, ...added]))
    }),
  )
})

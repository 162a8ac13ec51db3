import * as fc from "fast-check"
import { expect, it } from "vitest"
import { type FieldList, HeaderDecoder } from "./HeaderDecoder.ts"
import { HeaderEncoder, HeaderTemplate } from "./HeaderEncoder.ts"

const decoder = () => new HeaderDecoder(1_000_000, (fields: FieldList) => fields)

it("encodes a template as indices from the second time on", () => {
  const encoder = new HeaderEncoder()
  const template = new HeaderTemplate([":status", "200", "content-type", "application/grpc", "grpc-status", "0"])
  const read = decoder()
  expect(read.decode(encoder.encode(template))).toEqual(template.fields)
  const second = encoder.encode(template)
  expect(second.length).toBe(3)
  expect(read.decode(second)).toEqual(template.fields)
  expect(encoder.encode(template)).toBe(second)
})

it("announces a smaller table, and does not use it", () => {
  const encoder = new HeaderEncoder()
  const template = new HeaderTemplate([":status", "200", "content-type", "application/grpc"])
  const read = decoder()
  read.decode(encoder.encode(template))
  encoder.limit(0)
  const block = encoder.encode(template)
  expect(block[0]).toBe(0x20)
  expect(read.decode(block)).toEqual(template.fields)
  expect(read.decode(encoder.encode(template))).toEqual(template.fields)
})

it("replaces characters that would begin another line", () => {
  const [, value] = decoder().decode(new HeaderEncoder().encode(undefined, ["a", "b\r\nc\u010ad\0"]))
  expect(value).toBe("b??c?d?")
})

const latin1 = fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)) })
const fieldLists = fc.array(fc.tuple(fc.constantFrom("a", "te", ":path", "content-type", "cookie", "x-y"), latin1))

it("encodes what a decoder reads, for any fields, templates and sizes of the table", () => {
  const step = fc.oneof(
    fc.record({ limit: fc.constantFrom(0, 40, 100, 4096, 100_000) }),
    fc.record({ template: fc.option(fc.nat(2), { nil: undefined }), fields: fieldLists }),
  )
  fc.assert(
    fc.property(fc.array(fieldLists, { minLength: 3, maxLength: 3 }), fc.array(step), (lists, steps) => {
      const templates = lists.map((fields) => new HeaderTemplate(fields.flat()))
      const [encoder, read] = [new HeaderEncoder(), decoder()]
      for (const one of steps) {
        if ("limit" in one) {
          encoder.limit(one.limit)
          continue
        }
        const template = one.template === undefined ? undefined : templates[one.template]
        const expected = [...(template?.fields ?? []), ...one.fields.flat()]
        expect(read.decode(encoder.encode(template, one.fields.flat()))).toEqual(expected)
      }
    }),
  )
})

import * as fc from "fast-check"
import { expect, it } from "vitest"
import { decode, encode, encodedLength } from "./HuffmanCode.ts"

it.each([
  ["www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"],
  ["no-cache", "a8eb10649cbf"],
  ["custom-value", "25a849e95bb8e8b4bf"],
  ["Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"],
  [
    "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
  ],
  ["", ""],
])("%s, as in RFC 7541, C", (text, hex) => {
  expect(decode(Buffer.from(hex, "hex"))).toBe(text)
  const bytes = Buffer.alloc(encodedLength(text))
  expect(encode(text, bytes, 0)).toBe(bytes.length)
  expect(bytes.toString("hex")).toBe(hex)
})

it.each([
  ["padding that is not ones", "f1e3c2e5f23a6ba0ab90f4fe"],
  ["a whole byte of padding", "a8eb10649cbfff"],
  ["the code that ends a text", "ffffffff"],
])("refuses %s", (_, hex) => {
  expect(decode(Buffer.from(hex, "hex"))).toBeUndefined()
})

it("decodes what it encodes, for all characters of Latin-1", () => {
  const latin1 = fc.string({ unit: fc.integer({ min: 0, max: 0xff }).map((code) => String.fromCharCode(code)) })
  fc.assert(
    fc.property(latin1, (text) => {
      const bytes = Buffer.alloc(encodedLength(text))
      encode(text, bytes, 0)
      expect(decode(bytes)).toBe(text)
    }),
  )
})

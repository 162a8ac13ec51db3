import { expect, it } from "vitest"
import { decode } from "./HuffmanCode.ts"

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
})

it.each([
  ["padding that is not ones", "f1e3c2e5f23a6ba0ab90f4fe"],
  ["a whole byte of padding", "a8eb10649cbfff"],
  ["the code that ends a text", "ffffffff"],
])("refuses %s", (_, hex) => {
  expect(decode(Buffer.from(hex, "hex"))).toBeUndefined()
})

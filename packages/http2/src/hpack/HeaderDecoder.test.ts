import { describe, expect, it } from "vitest"
import { type FieldList, HeaderDecoder, HeaderError } from "./HeaderDecoder.ts"

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex")

const decoder = (maxListSize = 65_536) =>
  new HeaderDecoder(maxListSize, (fields: FieldList, isTooLarge) => ({ fields, isTooLarge }))

/** `name: value` of each field. */
const lines = (fields: FieldList): ReadonlyArray<string> =>
  fields.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${fields[index + 1]}`] : []))

const get = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"]
const last = [":method: GET", ":scheme: https", ":path: /index.html", ":authority: www.example.com"]
const requests = [get, [...get, "cache-control: no-cache"], [...last, "custom-key: custom-value"]]

const location = "location: https://www.example.com"
const date = "date: Mon, 21 Oct 2013 20:13:21 GMT"
const responses = [
  [":status: 302", "cache-control: private", date, location],
  [":status: 307", "cache-control: private", date, location],
  [
    ":status: 200",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:22 GMT",
    location,
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ],
]

describe("RFC 7541, appendix C", () => {
  it.each([
    ["C.2.1", "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header"],
    ["C.2.2", "040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path"],
    ["C.2.3", "1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret"],
    ["C.2.4", "82", ":method: GET"],
  ])("%s: a single field", (_, hex, expected) => {
    expect(lines(decoder().decode(bytes(hex)).fields)).toEqual([expected])
  })

  it.each([
    [
      "C.3",
      [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
      ],
    ],
    [
      "C.4",
      [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
      ],
    ],
  ])("%s: requests", (_, blocks) => {
    const one = decoder()
    expect(blocks.map((hex) => lines(one.decode(bytes(hex)).fields))).toEqual(requests)
  })

  it.each([
    [
      "C.5",
      [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d " +
          "546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f " +
          "6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 " +
          "303b 2076 6572 7369 6f6e 3d31",
      ],
    ],
    [
      "C.6",
      [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 " +
          "8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 " +
          "dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
      ],
    ],
  ])("%s: responses, with a table of 256 bytes that evicts", (_, blocks) => {
    const one = decoder()
    one.decode(bytes("3fe101"))
    expect(blocks.map((hex) => lines(one.decode(bytes(hex)).fields))).toEqual(responses)
  })
})

it("returns the same result for a repeated block, until the table changes", () => {
  const one = decoder()
  one.decode(bytes("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"))
  const first = one.decode(bytes("82be"))
  expect(one.decode(bytes("82be"))).toBe(first)
  one.decode(bytes("4001 6101 62"))
  expect(lines(one.decode(bytes("82be")).fields)).toEqual([":method: GET", "a: b"])
})

it("remembers no short block of many bytes of fields", () => {
  const one = decoder()
  const entry = Buffer.concat([bytes("4001 61 7f a10f"), Buffer.alloc(2080, "v")])
  one.decode(entry)
  const references = (count: number) => Buffer.alloc(count, 0xbe)
  const [few, many] = [3, 4].map(references).map((block) => [one.decode(block), one.decode(block)] as const)
  expect(few?.[1]).toBe(few?.[0])
  expect(many?.[1]).toEqual(many?.[0])
  expect(many?.[1]).not.toBe(many?.[0])
})

it("keeps no field beyond the largest list, and the table stays right", () => {
  const one = decoder(100)
  const block = bytes(`${"4001 61 3f".replaceAll(" ", "")}${"62".repeat(63)}${"be".repeat(40)}4001 63 01 64`)
  const { fields, isTooLarge } = one.decode(block)
  expect(isTooLarge).toBe(true)
  expect(fields.length).toBeLessThanOrEqual(2)
  expect(lines(one.decode(bytes("be")).fields)).toEqual(["c: d"])
})

it.each([
  ["an index that is not in a table", "c6"],
  ["the index 0", "80"],
  ["a field that ends after its block", "4001"],
  ["a text that ends after its block", "40 0a 61"],
  ["an integer of more than four bytes", "ff ff ff ff ff ff 01"],
  ["Huffman code with wrong padding", "00 01 61 81 00"],
  ["a table that is larger than allowed", "3fe2 7f"],
  ["a change of the table's size behind a field", "8220"],
])("refuses %s", (_, hex) => {
  expect(() => decoder().decode(bytes(hex))).toThrow(HeaderError)
})

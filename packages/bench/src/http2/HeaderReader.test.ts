import { expect, it } from "vitest"
import { HeaderError, HeaderReader } from "./HeaderReader.ts"

const block = (hex: string) => Buffer.from(hex.replaceAll(" ", ""), "hex")
const entries = (headers: ReadonlyMap<string, string>) => [...headers].map(([name, value]) => `${name}: ${value}`)

const first = [
  ":status: 302",
  "cache-control: private",
  "date: Mon, 21 Oct 2013 20:13:21 GMT",
  "location: https://www.example.com",
]

/** Into a table of 256 bytes, from which the third block evicts what the first has added. */
it.each([
  [
    "without Huffman code (RFC 7541, C.5)",
    "3fe101 4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
    "4803333037c1c0bf",
    "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
  ],
  [
    "in Huffman code (RFC 7541, C.6)",
    "3fe101 488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
    "4883640effc1c0bf",
    "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
  ],
])("reads replies that refer to one another, %s", (_, one, two, three) => {
  const reader = new HeaderReader()
  expect(entries(reader.read(block(one)))).toEqual(first)
  expect(entries(reader.read(block(two)))).toEqual([":status: 307", ...first.slice(1)])
  expect(entries(reader.read(block(three)))).toEqual([
    ":status: 200",
    "cache-control: private",
    "date: Mon, 21 Oct 2013 20:13:22 GMT",
    "location: https://www.example.com",
    "content-encoding: gzip",
    "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
  ])
})

it("the same block gives the same object, until the table changes", () => {
  const reader = new HeaderReader()
  const added = block("4003 612d62 0178")
  reader.read(added)
  const indexed = block("88be")
  const headers = reader.read(indexed)
  expect(entries(headers)).toEqual([":status: 200", "a-b: x"])
  expect(reader.read(Buffer.from(indexed))).toBe(headers)
  reader.read(block("4003 612d62 0179"))
  expect(entries(reader.read(indexed))).toEqual([":status: 200", "a-b: y"])
})

it("a name that comes twice has both values", () => {
  expect(entries(new HeaderReader().read(block("0003612d62 0178 0003612d62 0179")))).toEqual(["a-b: x, y"])
})

it.each([
  ["an index that nothing has", "be"],
  ["the index 0", "80"],
  ["a text beyond the block", "4003 612d"],
  ["a block that ends in a field", "40"],
  ["an integer without end", "ff ffffffff ffffffff"],
  ["a table larger than was offered", "3fe21f"],
])("refuses %s", (_, hex) => {
  expect(() => new HeaderReader().read(block(hex))).toThrow(HeaderError)
})

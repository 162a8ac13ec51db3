import { expect, it } from "@effect/vitest"
import * as Digest from "./Digest.ts"

const words = (digest: string): ReadonlyArray<string> =>
  [0, 2, 4, 6].map((unit) =>
    (((digest.charCodeAt(unit) ?? 0) | (digest.charCodeAt(unit + 1) << 16)) >>> 0).toString(16).padStart(8, "0"),
  )

const counting = (length: number) => Uint8Array.from({ length }, (_, index) => index)

const key: Digest.Key = [0x833d3433 | 0, 0x009f389f, 0x2398e64f, 0x417acf39]

it("is Chaskey: the vectors of its authors", () => {
  const digest = Digest.make(key)
  const vectors: ReadonlyArray<readonly [number, string]> = [
    [0, "792e8fe5 75ce87aa 2d1450b5 1191970b"],
    [1, "13a9307b 50e62c89 4577bd88 c0bbdc18"],
    [2, "55df8922 2c7ff577 73809ef4 4e5084c0"],
    [15, "51b94da4 efcc4de8 192412ea bbc170dd"],
    [16, "79271ca9 d66a1c71 81ca474e 49831cad"],
    [17, "048da968 4e25d096 2d6cf897 bc3959ca"],
  ]
  for (const [length, expected] of vectors)
    expect(words(digest([counting(length)])).join(" "), `${length}`).toBe(expected)
})

it("of parts it is that of all their bytes, wherever they are cut and however they are aligned", () => {
  const digest = Digest.make(Digest.randomKey())
  for (const length of [0, 1, 15, 16, 17, 31, 32, 33, 100]) {
    const whole = digest([counting(length)])
    for (let cut = 0; cut <= length; cut++) {
      const [one, other] = [counting(length).subarray(0, cut), counting(length).subarray(cut)]
      expect(digest([one, other]), `${length} cut at ${cut}`).toBe(whole)
      expect(digest([new Uint8Array(), one, new Uint8Array(), other]), `${length} cut at ${cut}`).toBe(whole)
    }
    const unaligned = new Uint8Array(length + 3)
    unaligned.set(counting(length), 3)
    expect(digest([unaligned.subarray(3)])).toBe(whole)
  }
})

it("each bit of a message and the key make another digest", () => {
  const digest = Digest.make(key)
  const seen = new Set([digest([new Uint8Array(48)])])
  for (let bit = 0; bit < 48 * 8; bit++) {
    const message = new Uint8Array(48)
    message[bit >> 3] = 1 << (bit & 7)
    seen.add(digest([message]))
  }
  for (let length = 0; length < 48; length++) seen.add(digest([new Uint8Array(length)]))
  seen.add(Digest.make(Digest.randomKey())([new Uint8Array(48)]))
  expect(seen.size).toBe(1 + 48 * 8 + 48 + 1)
})

/** Digests of files, compared with published values. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { repository } from "../../../../../test/fixtures/repository.ts"
import * as Checksum from "./Checksum.ts"
import { Crc32c } from "./Crc32c.ts"

const published = {
  md5: "25f9e794323b453885f5181f1b624d0b",
  sha1: "f7c3bc1d808e04732adf679965ccc34ca7ae3441",
  sha256: "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225",
  crc32: "cbf43926",
  crc32c: "e3069283",
} as const

it.live.each(["md5", "sha1", "sha256", "crc32", "crc32c"] as const)("%s of 123456789", (algorithm) =>
  Effect.gen(function* () {
    const fixture = yield* repository
    fixture.write("file", "123456789")
    const signal = new AbortController().signal
    const found = yield* Effect.promise(() => Checksum.ofFile(`${fixture.path}/file`, algorithm, signal))
    expect(found).toBe(published[algorithm])
  }),
)

it.live("the digest of git is that of an empty blob and of hello", () =>
  Effect.gen(function* () {
    const fixture = yield* repository
    const signal = new AbortController().signal
    fixture.write("empty", "")
    fixture.write("hello", "hello\n")
    const of = (name: string) => Effect.promise(() => Checksum.ofFile(`${fixture.path}/${name}`, "git", signal))
    expect(yield* of("empty")).toBe("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")
    expect(yield* of("hello")).toBe("ce013625030ba8dba906f756967f9e9ca394464a")
  }),
)

it("CRC-32C does not depend on how the bytes are divided", () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, index) => (index * 7) & 0xff)
  const whole = new Crc32c()
  whole.update(bytes)
  for (const size of [1, 3, 4, 7, 64]) {
    const parts = new Crc32c()
    for (let start = 0; start < bytes.length; start += size) parts.update(bytes.subarray(start, start + size))
    expect(parts.hex()).toBe(whole.hex())
  }
  // Of RFC 3720: 32 bytes of zeros, and of ones.
  const of = (value: number) => {
    const sum = new Crc32c()
    sum.update(new Uint8Array(32).fill(value))
    return sum.hex()
  }
  expect([of(0), of(255)]).toEqual(["8a9136aa", "62a8ab43"])
})

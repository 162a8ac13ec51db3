import { expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Envelopes } from "./Envelopes.ts"
import { frame } from "./GrpcServer.fixture.ts"

it("counts messages and what is there of the next, however the bytes are cut", () => {
  const lengths = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 6 })
  fc.assert(
    fc.property(lengths, fc.array(fc.integer({ min: 1, max: 400 })), fc.nat(304), (sizes, cuts, part) => {
      const started = frame(new Uint8Array(300)).subarray(0, part)
      const bytes = Buffer.concat([...sizes.map((size) => frame(new Uint8Array(size))), started])
      const envelopes = new Envelopes()
      let offset = 0
      for (const cut of [...cuts, bytes.length]) {
        envelopes.add(bytes.subarray(offset, offset + cut))
        offset += cut
      }
      expect([envelopes.count, envelopes.incomplete]).toEqual([sizes.length, part])
    }),
  )
})

it("knows lengths beyond 31 bits", () => {
  const envelopes = new Envelopes()
  envelopes.add(Uint8Array.of(0, 0xff, 0xff, 0xff, 0xff, 1))
  expect([envelopes.count, envelopes.incomplete]).toEqual([0, 6])
})

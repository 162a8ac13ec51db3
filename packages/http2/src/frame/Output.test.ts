/** The memory of frames that wait to be written. */
import { expect, it } from "vitest"
import { Output } from "./Output.ts"

const frame = (length: number, value: number) => Buffer.alloc(length, value)

it("returns what was added, in order, however large it is", () => {
  const output = new Output()
  const frames = [10, 5_000, 1, 20_000, 3_000, 3_000, 3_000, 9, 100_000].map(frame)
  for (const one of frames) output.add(one)
  expect(output.size).toBe(Buffer.concat(frames).length)
  expect(Buffer.concat(output.take()).equals(Buffer.concat(frames))).toBe(true)
  expect([output.size, output.take()]).toEqual([0, []])
})

it("uses the same memory again for many connections that write a little in each turn", () => {
  const outputs = Array.from({ length: 400 }, () => new Output())
  const memory = new Set<ArrayBufferLike>()
  for (let turn = 0; turn < 20; turn++) {
    for (const [index, output] of outputs.entries()) output.add(frame(100, index % 251))
    for (const [index, output] of outputs.entries()) {
      const pieces = output.take()
      expect(Buffer.concat(pieces).equals(frame(100, index % 251))).toBe(true)
      for (const { buffer } of pieces) memory.add(buffer)
    }
  }
  expect(memory.size).toBeLessThan(450)
})

it("does not write over what a connection has taken and not sent yet", () => {
  const outputs = [new Output(), new Output()]
  const taken: Array<{ readonly pieces: ReadonlyArray<Buffer>; readonly value: number }> = []
  for (let value = 0; value < 200; value++) {
    for (const output of outputs) output.add(frame(90, value))
    for (const output of outputs) taken.push({ pieces: output.take(), value })
  }
  for (const { pieces, value } of taken) expect(Buffer.concat(pieces).equals(frame(90, value))).toBe(true)
})

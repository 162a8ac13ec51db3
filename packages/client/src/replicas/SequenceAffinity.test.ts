import { expect, it } from "vitest"
import { Ejection } from "./Ejection.ts"
import { Replica } from "./Replica.ts"
import { silentChannel } from "./ScriptedChannel.fixture.ts"
import { SequenceAffinity, sequenceOf } from "./SequenceAffinity.ts"

const replica = () =>
  new Replica("r", silentChannel, new Ejection({ failures: 1, time: 1, maxTime: 1, returnTime: 1 }, Math.random))

it("finds the replica of a sequence, by number or text", () => {
  const affinity = new SequenceAffinity(() => {})
  const [one, two] = [replica(), replica()]
  affinity.set(5n, one)
  affinity.set("5", two)
  expect([affinity.find(5n), affinity.find("5"), affinity.find(6n)]).toEqual([one, two, undefined])
})

it("tells when the last sequence of a replica is over", () => {
  const unused: Array<Replica> = []
  const affinity = new SequenceAffinity((replica) => unused.push(replica))
  const [one, two] = [replica(), replica()]
  affinity.set(1n, one)
  affinity.set(2n, one)
  affinity.set(2n, two)
  expect([one.sequences, two.sequences, unused]).toEqual([1, 1, []])
  affinity.forget(1n)
  affinity.forget(1n)
  expect([one.sequences, unused]).toEqual([0, [one]])
})

it("forgets the sequence that was idle for longest, beyond 100,000", () => {
  const affinity = new SequenceAffinity(() => {})
  const one = replica()
  for (let id = 1n; id <= 100_000n; id++) affinity.set(id, one)
  affinity.find(1n)
  affinity.set(100_001n, one)
  expect([affinity.size, one.sequences]).toEqual([100_000, 100_000])
  expect([affinity.find(1n), affinity.find(2n), affinity.find(3n)]).toEqual([one, undefined, one])
})

it.each([
  [{ sequence_id: 5n }, 5n],
  [{ sequence_id: "a" }, "a"],
  [{ sequence_id: 0n }, undefined],
  [{ sequence_id: "" }, undefined],
  [{ sequence_id: true }, undefined],
  [{}, undefined],
])("the sequence of %o", (parameters, id) => {
  expect(sequenceOf(parameters)).toBe(id)
})

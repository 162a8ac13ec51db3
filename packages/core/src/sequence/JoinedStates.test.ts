import { expect, it } from "vitest"
import { Result } from "effect"
import { ExecutionFailed } from "../error/InferenceError.ts"
import { noParameters, type Request } from "../request/Request.ts"
import { TypedTensor } from "../tensor/TypedTensor.ts"
import * as JoinedStates from "./JoinedStates.ts"
import { SequenceMemory, StateBudget } from "./SequenceMemory.ts"

const limits = { maxStateBytes: 100, maxTotalStateBytes: 100 }
const bytes = (...values: ReadonlyArray<number>) =>
  new TypedTensor("UINT8", [1, values.length], Uint8Array.from(values))
const initial = () => [bytes(0, 0)]

const requestOf = (state: SequenceMemory): Request => ({
  id: "",
  inputs: [],
  rows: 1,
  parameters: noParameters,
  deadline: undefined,
  sequence: { id: 1n, isStart: false, isEnd: false, isReady: true, state },
})

const memories = (count: number, budget = new StateBudget(limits)) =>
  Array.from({ length: count }, () => new SequenceMemory(budget))
const succeeded = Result.succeed({ outputs: [], parameters: noParameters })
const tooLarge = () => new ExecutionFailed({ message: "too large" })
const elements = (tensors: ReadonlyArray<TypedTensor> | undefined) => tensors?.map((tensor) => [...tensor.bytes])

it("joins the states of a batch, and the initial ones of new sequences", () => {
  const [one = never(), other = never()] = memories(2)
  one.keep([bytes(1, 2)], false)
  const joined = JoinedStates.gather([one, other].map(requestOf), initial)
  expect(elements(joined)).toEqual([[1, 2, 0, 0]])
  expect(joined?.[0]?.shape).toEqual([2, 2])
})

it("keeps the rows of requests that have succeeded", () => {
  const states = memories(3)
  const joined = [new TypedTensor("UINT8", [3, 2], Uint8Array.of(1, 2, 3, 4, 5, 6))]
  const failed = Result.fail(tooLarge())
  const outcomes = [succeeded, failed, succeeded]
  expect(JoinedStates.scatter(states.map(requestOf), outcomes, joined, tooLarge)).toBe(outcomes)
  expect(states.map(({ tensors }) => elements(tensors))).toEqual([[[1, 2]], undefined, [[5, 6]]])
  expect(states[0]?.tensors?.[0]?.shape).toEqual([1, 2])
})

it("fails the request whose state exceeds a limit, and no other one", () => {
  const states = memories(2, new StateBudget({ maxStateBytes: 10, maxTotalStateBytes: 3 }))
  const joined = [new TypedTensor("UINT8", [2, 2], Uint8Array.of(1, 2, 3, 4))]
  const kept = JoinedStates.scatter(states.map(requestOf), [succeeded, succeeded], joined, tooLarge)
  expect(kept.map(Result.isSuccess)).toEqual([true, false])
  expect(states.map(({ isTooLarge }) => isTooLarge)).toEqual([false, true])
})

it("joins no texts, no empty tensors, and no states of different sizes", () => {
  const gathered = (...tensors: ReadonlyArray<TypedTensor>) => {
    const states = memories(tensors.length)
    for (const [index, tensor] of tensors.entries()) states[index]?.keep([tensor], false)
    return JoinedStates.gather(states.map(requestOf), initial)
  }
  const text = new TypedTensor("BYTES", [1, 1], new Uint8Array(4))
  expect(gathered(text, text)).toBeUndefined()
  expect(gathered(bytes(), bytes())).toBeUndefined()
  expect(gathered(bytes(1, 2), bytes(3))).toBeUndefined()
})

it("a row takes the memory of the state before, unless another reader may hold that", () => {
  const [state = never()] = memories(1)
  const keepRow = (...values: ReadonlyArray<number>) =>
    state.keepRow([new TypedTensor("UINT8", [2, values.length / 2], Uint8Array.from(values))], 1, 2)
  keepRow(1, 2, 3, 4)
  const own = state.tensors?.[0]?.bytes
  keepRow(5, 6, 7, 8)
  expect(state.tensors?.[0]?.bytes).toBe(own)
  expect(elements(state.tensors)).toEqual([[7, 8]])
  const held = state.handOut()
  keepRow(9, 10, 11, 12)
  expect(elements(held)).toEqual([[7, 8]])
  expect(elements(state.tensors)).toEqual([[11, 12]])
  keepRow(1, 2, 3, 4, 5, 6)
  expect(elements(state.tensors)).toEqual([[4, 5, 6]])
  expect(state.bytes).toBe(3)
})

it("a row of many bytes has all of them", () => {
  const [state = never()] = memories(1)
  const values = Array.from({ length: 200 }, (_, index) => index)
  for (let time = 0; time < 2; time++) {
    state.keepRow(
      [
        new TypedTensor(
          "UINT8",
          [2, 100],
          Uint8Array.from(values, (value) => value + time),
        ),
      ],
      1,
      2,
    )
  }
  expect(elements(state.tensors)).toEqual([values.slice(100).map((value) => value + 1)])
})

function never(): never {
  throw new Error("There is one. This is a bug of the test.")
}

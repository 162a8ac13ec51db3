/** Requests that go on after their batch. */
import { Result } from "effect"
import { expect, it, vi } from "vitest"
import { noParameters, type Reply, type Request, type Response, type Rest } from "../request/Request.ts"
import * as ContinuationStage from "./ContinuationStage.ts"

const request: Request = { id: "", inputs: [], rows: 1, parameters: {}, deadline: undefined }

/** A stage before an instance that answers when the test does. */
const staged = () => {
  let open = 0
  let answer: Reply = () => {}
  const cancel = vi.fn<() => void>()
  const stage = ContinuationStage.make(() => {
    open += 1
    let isKept = true
    return () => {
      if (isKept) open -= 1
      isKept = false
    }
  })
  const submit = stage((_, reply) => {
    answer = reply
    return cancel
  })
  return { submit, cancel, answer: (response: Response) => answer(Result.succeed(response)), kept: () => open }
}

const response = (rest?: Rest): Response => ({ outputs: [], parameters: noParameters, ...(rest && { rest }) })

it("a request that ends with its batch is answered by it", () => {
  const { submit, answer, kept } = staged()
  const reply = vi.fn<Reply>()
  submit(request, reply)
  answer(response())
  expect(reply).toHaveBeenCalledExactlyOnceWith(Result.succeed(response()))
  expect(kept()).toBe(0)
})

it("a request that goes on is answered later, and keeps its model until then", () => {
  const { submit, answer, kept } = staged()
  const reply = vi.fn<Reply>()
  let end: Reply = () => {}
  submit(request, reply)
  answer(
    response((last) => {
      end = last
      return () => {}
    }),
  )
  expect(reply).not.toHaveBeenCalled()
  expect(kept()).toBe(1)
  end(Result.succeed(response()))
  expect(reply).toHaveBeenCalledExactlyOnceWith(Result.succeed(response()))
  expect(kept()).toBe(0)
})

it("a cancellation reaches the batch before its end, and the rest of the request after it", () => {
  const { submit, answer, cancel, kept } = staged()
  const cancelRest = vi.fn<() => void>()
  submit(request, () => {})()
  expect(cancel).toHaveBeenCalledOnce()
  const leave = submit(request, () => {})
  answer(response(() => cancelRest))
  leave()
  expect(cancelRest).toHaveBeenCalledOnce()
  expect(cancel).toHaveBeenCalledOnce()
  expect(kept()).toBe(0)
})

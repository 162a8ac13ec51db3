import { expect, it } from "@effect/vitest"
import { Result } from "effect"
import { constVoid } from "effect/Function"
import type { Request, Response } from "../request/Request.ts"
import { request } from "./Scheduler.fixture.ts"
import * as SubmitPipeline from "./SubmitPipeline.ts"

const response: Response = { outputs: [], parameters: {} }

/** A pipeline with these stages: the names of the stages that a request passed, and its reply. */
const pass = (
  names: ReadonlyArray<keyof SubmitPipeline.SubmitStages>,
  own: Partial<SubmitPipeline.SubmitStages> = {},
) => {
  const passed: Array<string> = []
  const stage =
    (name: string): SubmitPipeline.Stage =>
    (next) =>
    (request, reply, counts) => {
      passed.push(name)
      return next(request, reply, counts)
    }
  const absent = { parameters: undefined, defaults: undefined, cache: undefined, split: undefined }
  const named = Object.fromEntries(names.map((name) => [name, stage(name)]))
  const received: Array<Request> = []
  const submit = SubmitPipeline.make({ ...absent, ...named, ...own }, (request, reply) => {
    received.push(request)
    reply(Result.succeed(response))
    return constVoid
  })
  const responses: Array<unknown> = []
  submit(request(1), (outcome) => responses.push(Result.isSuccess(outcome) ? outcome.success : outcome.failure._tag))
  return { passed, received, responses }
}

it("takes a request through all stages in their order, whatever the order they are given in", () => {
  const { passed, received, responses } = pass([
    "numbers",
    "split",
    "cache",
    "emissions",
    "parameters",
    "sessions",
    "defaults",
  ])
  expect(passed).toEqual(["sessions", "emissions", "parameters", "defaults", "cache", "split", "numbers"])
  expect(received).toHaveLength(1)
  expect(responses).toEqual([response])
})

it("leaves out the stages that a model does not need", () => {
  expect(pass(["cache"]).passed).toEqual(["cache"])
  expect(pass([]).passed).toEqual([])
})

it("ends at the stage that answers", () => {
  const other: Response = { outputs: [], parameters: { cached: true } }
  const cache: SubmitPipeline.Stage = () => (_, reply) => {
    reply(Result.succeed(other))
    return constVoid
  }
  const { passed, received, responses } = pass(["parameters", "split"], { cache })
  expect([passed, received, responses]).toEqual([["parameters"], [], [other]])
})

it("submits what a stage makes of a request, to the stages behind it and no others", () => {
  const halves: SubmitPipeline.Stage = (next) => (request, reply, counts) => {
    next({ ...request, rows: 1 }, constVoid, counts)
    return next({ ...request, rows: 2 }, reply, counts)
  }
  const { passed, received, responses } = pass(["defaults", "split"], { cache: halves })
  expect(passed).toEqual(["defaults", "split", "split"])
  expect(received.map(({ rows }) => rows)).toEqual([1, 2])
  expect(responses).toEqual([response])
})

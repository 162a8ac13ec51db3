import { create } from "@bufbuild/protobuf"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { expect, it } from "vitest"
import * as StartThreshold from "./StartThreshold.ts"

const dynamic = create(ModelConfigSchema, { schedulingChoice: { case: "dynamicBatching", value: {} } })
const sequences = create(ModelConfigSchema, { schedulingChoice: { case: "sequenceBatching", value: {} } })

const variables = (requests: string, backlogged = "3") => ({
  TRITONSERVER_DELAY_SCHEDULER: requests,
  TRITONSERVER_BACKLOG_DELAY_SCHEDULER: backlogged,
})

it("a dynamic batcher waits for requests, and has no backlog", () => {
  expect(StartThreshold.read(variables("12"), dynamic)).toEqual({ requests: 12, backlogged: 0 })
  expect(StartThreshold.read(variables("0"), dynamic)).toBeUndefined()
})

it("sequences wait for requests and for a backlog", () => {
  expect(StartThreshold.read(variables("12"), sequences)).toEqual({ requests: 12, backlogged: 3 })
  expect(StartThreshold.read(variables("0"), sequences)).toEqual({ requests: 0, backlogged: 3 })
})

it("nothing waits without the variables, and without a batcher", () => {
  expect(StartThreshold.read({}, dynamic)).toBeUndefined()
  expect(StartThreshold.read({}, sequences)).toBeUndefined()
  expect(StartThreshold.read(variables("12"), create(ModelConfigSchema))).toBeUndefined()
})

it.each(["", "many", "-1", "1.5", "1e3", " 4", "4 ", "0x10", "12345678901"])("the value '%s' is ignored", (value) => {
  expect(StartThreshold.read(variables(value, value), sequences)).toBeUndefined()
  expect(StartThreshold.read(variables(value), dynamic)).toBeUndefined()
})

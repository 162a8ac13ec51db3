/** Settings of models in Python from the parameters of their configuration. */
import { create } from "@bufbuild/protobuf"
import { ModelConfigSchema } from "@nereid/protocol/model_config"
import { Result } from "effect"
import { expect, it } from "vitest"
import * as PythonParameters from "./PythonParameters.ts"

const read = (texts: Readonly<Record<string, string>>) => {
  const parameters = Object.fromEntries(Object.entries(texts).map(([name, stringValue]) => [name, { stringValue }]))
  return PythonParameters.make(create(ModelConfigSchema, { parameters }), "/models/m")
}

// P2.initialize.unlimited@local
it("without parameters, there are no limits but that of finalize, and one execution at a time", () => {
  expect(read({ other: "x" })).toEqual(
    Result.succeed({
      environment: undefined,
      limits: { initializeTimeout: undefined, executeTimeout: undefined, stopTimeout: 30_000, memory: undefined },
      inThreads: false,
      concurrency: 1,
      inheritEnv: [],
    }),
  )
})

it("each parameter has its setting", () => {
  const parameters = {
    EXECUTION_ENV_PATH: "$$TRITON_MODEL_DIRECTORY/env",
    initialize_timeout_seconds: "60",
    execute_timeout_seconds: " 2 ",
    finalize_timeout_seconds: "3",
    max_process_memory_bytes: "1000000000",
    concurrent_executions: "16",
    instances_in_threads: "yes",
    inherited_variables: "A, B_*",
  }
  expect(read(parameters)).toEqual(
    Result.succeed({
      environment: "/models/m/env",
      limits: { initializeTimeout: 60_000, executeTimeout: 2000, stopTimeout: 3000, memory: 1e9 },
      inThreads: true,
      concurrency: 16,
      inheritEnv: ["A", "B_*"],
    }),
  )
})

it.each([
  ["concurrent_executions", "0", "must be an integer from 1 to 1024, but '0' was given"],
  ["concurrent_executions", "1025", "must be an integer from 1 to 1024, but '1025' was given"],
  ["concurrent_executions", "two", "must be an integer from 1 to 1024, but 'two' was given"],
  ["execute_timeout_seconds", "86401", "must be an integer from 1 to 86400, but '86401' was given"],
])("%s of %s is refused", (name, value, problem) => {
  expect(read({ [name]: value })).toEqual(Result.fail(`parameter '${name}' ${problem}`))
})

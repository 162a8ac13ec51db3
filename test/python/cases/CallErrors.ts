/** Calls of other models that fail. */
import { expect } from "vitest"
import type { CaseServer, PythonCase } from "../PythonCase.ts"
import { call } from "./CallCode.ts"

const failureOf = (server: CaseServer, expression: string) => call(server, `return failure(${expression})`)

export const callErrorCases: ReadonlyArray<PythonCase> = [
  {
    name: "fail with an error, which is never an exception",
    proves: [
      "P6.error.value",
      "P6.error.unknown",
      "P6.error.inputs",
      "P6.error.outputs",
      "P6.error.decoupled",
      "P6.error.code",
      "P6.error.iterator",
    ],
    run: async (server) => {
      const failure = (expression: string) => failureOf(server, expression)
      expect(await failure('request_of(model_name="unknown").exec()')).toBe(
        "2 Model unknown - Error when running inference: Request for unknown model: 'unknown' is not found",
      )
      expect(await failure("request_of(model_version=9).exec()")).toContain(
        "Model add_sub - Error when running inference: Request for unknown model: 'add_sub' version 9 is not found",
      )
      expect(await failure("request_of(inputs=request_of().inputs()[:1]).exec()")).toMatch(
        /^3 Model add_sub - Error when running inference: .*expected 2 inputs but got 1 inputs for model 'add_sub'/,
      )
      expect(await failure('request_of(requested_output_names=["NO"]).exec()')).toContain(
        "unexpected inference output 'NO' for model 'add_sub'",
      )
      expect(await failure("counting(3).exec()")).toMatch(
        /^5 Model \S+ - Error when running inference: Model \S+ is using the decoupled\. .*'decoupled=True'/,
      )
      const coded = `request_of(model_name="codes", inputs=[pb.Tensor("IN", np.array([b"UNAVAILABLE"], dtype=np.object_))], requested_output_names=[]).exec()`
      expect(await failure(coded)).toBe("4 error code: UNAVAILABLE")
      expect(await failure("next(request_of(model_name='unknown').exec(decoupled=True))")).toContain("is not found")
    },
  },
]

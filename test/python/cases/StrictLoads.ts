/** Models whose code must not complete their configuration. */
import { expect } from "vitest"
import type { CaseGroup } from "../PythonCase.ts"
import { code, pairOf } from "../PythonRepository.ts"
import { reason } from "./LoadReason.ts"

const floats = pairOf("FP32", "4")

export const strictLoads: CaseGroup = {
  name: "models in Python with a strict configuration",
  models: { strict: { file: "triton_complete", config: floats } },
  files: (fixture) => {
    fixture.write("bare/1/model.py", code("triton_complete"))
    fixture.write("missing/1/.keep", "")
    fixture.write("missing/config.pbtxt", `backend: "python" ${floats}`)
  },
  options: { autoComplete: false },
  cases: [
    reason("a model without a configuration", "bare", "failed to open text file for read"),
    reason(
      "no file",
      "missing",
      "Failed to preinitialize Python stub: Python model file not found in 'PATH/missing/1/model.py'",
      "P1.file.missing-strict",
    ),
    {
      name: "the code completes nothing",
      proves: ["P2.complete.off"],
      run: async ({ client }) => {
        expect(await client.isReady("strict")).toBe(true)
        expect(await client.config("strict")).toMatchObject({ max_batch_size: 0 })
      },
    },
  ],
}

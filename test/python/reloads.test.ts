/** Models in Python that are loaded again: unchanged, changed, and below an ensemble. */
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { add, code, numbers, serve, write } from "./PythonRepository.ts"

describe.skipIf(python === undefined)("models in Python", () => {
  it("files that have not changed are not imported again", async () => {
    const fixture = await write({ same: { file: "triton_complete" } })
    const path = `${fixture.path}/same/1/model.py`
    fixture.write("same/1/model.py", `print("imported")\n${code("triton_complete")}`)
    const { load, log } = await serve(fixture, { control: "explicit", load: ["same"] })
    const imports = () => log().split("imported").length - 1
    await expect.poll(imports).toBe(2)
    expect((await load("same")).status).toBe(200)
    expect(imports(), path).toBe(2)
  })

  it("a model is loaded, reloaded and unloaded on request, also below an ensemble", async () => {
    const fixture = await write({
      identity: {
        file: "triton_identity",
        config:
          'input { name: "INPUT0" data_type: TYPE_FP32 dims: 1 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 1 }',
      },
    })
    fixture.write("whole/1/.keep", "")
    fixture.write(
      "whole/config.pbtxt",
      `platform: "ensemble" input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }
      ensemble_scheduling { step { model_name: "identity" model_version: -1
        input_map { key: "INPUT0" value: "X" } output_map { key: "OUTPUT0" value: "Y" } } }`,
    )
    const { infer, load, unload, isReady } = await serve(fixture, { control: "explicit" })
    const x = numbers("X", "FP32", [1], [7])
    for (let round = 0; round < 3; round++) {
      expect((await load("whole")).status).toBe(200)
      expect((await infer("whole", [x])).outputs?.[0]?.data).toEqual([7])
      expect((await unload("identity")).status).toBe(200)
      expect(await isReady("whole")).toBe(false)
      expect((await unload("whole")).status).toBe(200)
    }
    expect((await load("identity")).status).toBe(200)
    add(fixture, "identity", { file: "triton_complete" })
    expect((await load("identity")).status).toBe(200)
    expect((await infer("identity", [numbers("IN", "FP32", [1, 4], [1, 2, 3, 4])])).outputs?.[0]?.data).toEqual([
      2, 4, 6, 8,
    ])
  })
})

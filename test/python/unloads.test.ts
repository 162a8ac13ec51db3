/** Models in Python without a process: unloaded ones, and those without a Python. */
import { describe, expect, it, onTestFinished } from "vitest"
import { python } from "../fixtures/python.ts"
import { failureOf, parameter, serve, text, texts, write } from "./PythonRepository.ts"

describe.skipIf(python === undefined)("models in Python", () => {
  it("requests under way end with the process of an unloaded model, which finishes them first", async () => {
    const fixture = await write({ sync: { file: "triton_sync", config: texts } })
    const { infer, unload, load, log } = await serve(fixture, { control: "explicit", load: ["sync"] })
    const running = infer("sync", [text("IN", 'pb.Logger.log_info("begun")\ntime.sleep(0.3)\nreturn "done"')])
    await expect.poll(log).toContain("begun")
    expect((await unload("sync")).status).toBe(200)
    expect((await infer("sync", [text("IN", "return 1")])).error).toContain("sync")
    expect((await running).outputs?.[0]?.data).toEqual(["done"])
    expect((await load("sync")).status).toBe(200)
    expect((await infer("sync", [text("IN", "return 1")])).outputs?.[0]?.data).toEqual(["1"])
  })

  it("without Python, the model says why, and everything else is served", async () => {
    const before = process.env["NEREID_PYTHON"]
    const fixture = await write({
      sync: { file: "triton_sync", config: `${texts} ${parameter("EXECUTION_ENV_PATH", "no-such-python")}` },
    })
    fixture.adding("onnx", 1, 5)
    onTestFinished(() => {
      process.env["NEREID_PYTHON"] = before
    })
    const { index, rpc } = await serve(fixture)
    const [onnx, sync] = await index()
    expect(onnx?.state).toBe("READY")
    expect(sync?.reason).toContain("no-such-python")
    expect((await failureOf(rpc.modelInfer({ modelName: "sync" }))).message).toContain("has no available versions")
  })
})

/** Services of the server for models in Python: metrics, parameters, readiness, restarts, limits. */
import { mkdirSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { python } from "../fixtures/python.ts"
import { failureOf, numbers, serve, text, write } from "./PythonRepository.ts"

const texts =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'
const floats = 'input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 }'

const parameter = (name: string, value: string | number) =>
  `parameters { key: "${name}" value { string_value: "${value}" } }`

describe.skipIf(python === undefined)("metrics of models in Python", () => {
  it("are checked, shared by name, and shown with the labels of the model", async () => {
    const fixture = await write({
      one: { file: "triton_metrics", config: texts },
      two: { file: "triton_metrics", config: texts },
    })
    const { infer, metrics, unload } = await serve(fixture, { control: "explicit", load: ["*"] })
    for (const name of ["one", "two"]) {
      expect((await infer(name, [text("IN", "")])).outputs?.[0]?.data).toEqual(["4"])
    }
    const lines = (await metrics())
      .split("\n")
      .filter((line) => line.includes("test_kept"))
      .toSorted()
    expect(lines).toEqual([
      expect.stringMatching(/^# HELP test_kept description of .*kept/),
      "# TYPE test_kept counter",
      'test_kept{model="one",version="1"} 2',
      'test_kept{model="two",version="1"} 2',
    ])
    const times = (await metrics()).split("\n").filter((line) => line.startsWith("test_times"))
    expect(times).toEqual([
      'test_times_bucket{kind="x",le="1"} 2',
      'test_times_bucket{kind="x",le="2.5"} 4',
      'test_times_bucket{kind="x",le="+Inf"} 6',
      'test_times_sum{kind="x"} 19',
      'test_times_count{kind="x"} 6',
    ])
    // Released by the code itself.
    await expect.poll(metrics).not.toMatch(/test_(counter|gauge|histogram|empty|deleted)/)
    await unload("one")
    await expect.poll(metrics).not.toContain('test_kept{model="one"')
    expect(await metrics()).toContain('test_kept{model="two",version="1"} 2')
    await unload("two")
    await expect.poll(metrics).not.toContain("test_kept")
  })
})

describe.skipIf(python === undefined)("the API of models in Python", () => {
  it("refuses wrong arguments", async () => {
    const { infer } = await serve(await write({ checks: { file: "triton_checks", config: texts } }))
    expect((await infer("checks", [text("IN", "")])).outputs?.[0]?.data).toEqual([""])
  })

  it("carries parameters of requests and responses, and refuses other ones", async () => {
    const { infer } = await serve(await write({ sync: { file: "triton_sync", config: texts } }))
    const call = async (code: string, more: object = {}) => infer("sync", [text("IN", code)], more)
    const seen = await call("return request.parameters()", {
      parameters: { a: 1, b: true, c: "x", timeout: 5_000_000 },
    })
    expect(JSON.parse(String(seen.outputs?.[0]?.data[0]))).toEqual({ a: 1, b: true, c: "x" })
    const response = (value: string) =>
      `return pb.InferenceResponse([pb.Tensor("OUT", np.array(["x"], dtype=np.object_))], parameters=${value})`
    expect((await call(response('{"p": 7, "q": False, "r": "s"}'))).parameters).toEqual({ p: 7, q: false, r: "s" })
    for (const wrong of ["{1: 1}", '{"a": 1.5}', '{"a": None}', "[1]"]) {
      expect((await call(response(wrong))).error).toMatch(/Expect parameters (keys|values)|got <class 'list'>/)
    }
  })
})

describe.skipIf(python === undefined)("readiness of models in Python", () => {
  it("is_ready decides over both protocols, and its calls are shared", async () => {
    const fixture = await write({ ready: { file: "triton_ready", config: `${floats} instance_group { count: 2 }` } })
    fixture.write("ready/readiness", "true")
    const { isReady, rpc, infer, log, request } = await serve(fixture)
    const both = async () => [await isReady("ready"), (await rpc.modelReady({ name: "ready" })).ready]
    expect(await both()).toEqual([true, true])
    const reasons = {
      false: "is not ready (user-defined check failed).",
      raise: "is_ready has failed",
      text: "is_ready() must return a boolean value",
    }
    for (const [content, reason] of Object.entries(reasons)) {
      fixture.write("ready/readiness", content)
      expect(await both()).toEqual([false, false])
      expect(log()).toMatch(
        new RegExp(`Model 'ready' version 1 is not ready: .*${reason.replaceAll(/[().']/g, "\\$&")}`),
      )
    }
    expect((await infer("ready", [numbers("IN", "FP32", [1], [1])])).status).toBe(200)
    fixture.write("ready/readiness", "slow")
    const checks = await Promise.all(Array.from({ length: 16 }, () => isReady("ready")))
    expect(checks).toEqual(Array.from({ length: 16 }, () => true))
    expect((await request("models/ready/ready")).status).toBe(200)
  })

  it("a process that dies fails its requests alone, and is started again", async () => {
    const fixture = await write({
      sync: { file: "triton_sync", config: texts },
      other: { file: "triton_sync", config: texts },
    })
    const { infer, isReady, log } = await serve(fixture)
    const run = (code: string, model = "sync") => infer(model, [text("IN", code)])
    const first = await run("return os.getpid()")
    expect(await run("os.kill(os.getpid(), 9)")).toEqual({
      status: 500,
      error: "Stub process 'sync_0' is not healthy.",
    })
    expect((await run("return 1", "other")).status).toBe(200)
    await expect.poll(() => isReady("sync")).toBe(true)
    const second = await run("return os.getpid()")
    expect(second.status).toBe(200)
    expect(second.outputs?.[0]?.data).not.toEqual(first.outputs?.[0]?.data)
    expect(log()).toContain("The process of instance sync_0 died: signal SIGKILL")
    expect(await run("os._exit(3)")).toMatchObject({ status: 500 })
    await expect.poll(() => isReady("sync")).toBe(true)
  })

  it("an execution that takes too long ends its process, with the stacks in the log", async () => {
    const fixture = await write({
      slow: { file: "triton_sync", config: `${texts} ${parameter("execute_timeout_seconds", 1)}` },
    })
    const { infer, isReady, log } = await serve(fixture)
    const { error } = await infer("slow", [text("IN", "def loop_for_ever():\n    while True: pass\nloop_for_ever()")])
    expect(error).toBe("execute of instance 'slow_0' did not end within 1000 ms; its process was ended")
    await expect.poll(log).toContain("loop_for_ever")
    await expect.poll(() => isReady("slow")).toBe(true)
    expect((await infer("slow", [text("IN", "return 1")])).status).toBe(200)
  })

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
})

describe.skipIf(python === undefined)("environments of models in Python", () => {
  it("run the Python of a virtual environment, below the model or elsewhere", async () => {
    const environment = dirname(dirname(python ?? ""))
    const fixture = await write({
      by_path: { file: "triton_sync", config: `${texts} ${parameter("EXECUTION_ENV_PATH", environment)}` },
      below: {
        file: "triton_sync",
        config: `${texts} ${parameter("EXECUTION_ENV_PATH", "$$TRITON_MODEL_DIRECTORY/env")}`,
      },
    })
    mkdirSync(join(fixture.path, "below"), { recursive: true })
    symlinkSync(environment, join(fixture.path, "below/env"))
    const { infer, log } = await serve(fixture)
    const code = 'return os.environ["VIRTUAL_ENV"]'
    for (const model of ["by_path", "below"]) {
      expect((await infer(model, [text("IN", code)])).outputs?.[0]?.data).toEqual([environment])
    }
    expect(log()).toContain(`Using Python execution env ${environment}`)
  })

  it("cannot be chosen by the configuration of a request, and its files cannot be code", async () => {
    const fixture = await write({ sync: { file: "triton_sync", config: texts } })
    const { load, config } = await serve(fixture, { control: "explicit", load: ["sync"] })
    const given = await config("sync")
    const chosen = { ...given, parameters: { EXECUTION_ENV_PATH: { string_value: "/usr" } } }
    expect((await load("sync", { config: JSON.stringify(chosen) })).body.error).toContain(
      "the configuration of a request cannot choose EXECUTION_ENV_PATH",
    )
    const files = { config: JSON.stringify(given), "file:1/model.py": Buffer.from("x = 1").toString("base64") }
    expect((await load("sync", files)).body.error).toContain("a script cannot be loaded from the files of a request")
    expect((await load("sync", { config: JSON.stringify({ ...given, max_batch_size: 2 }) })).status).toBe(200)
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

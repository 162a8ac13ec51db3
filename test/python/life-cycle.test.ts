/** Models in Python from their load to their unload: detection, completion, errors, log. */
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { add, code, failureOf, numbers, serve, text, write } from "./PythonRepository.ts"

const io = (kind: string, dims: string) => `input { name: "IN" data_type: ${kind} dims: ${dims} }
output { name: "OUT" data_type: ${kind} dims: ${dims} }`

const floats = io("TYPE_FP32", "4")
const texts = io("TYPE_STRING", "1")

describe.skipIf(python === undefined)("models in Python", () => {
  it("initialize receives seven texts, the completed configuration among them", async () => {
    process.env["NEREID_TEST_SECRET"] = "hidden"
    process.env["NEREID_TEST_GIVEN"] = "shown"
    const parameter = 'parameters { key: "k" value { string_value: "v" } }'
    const inherited = 'parameters { key: "inherited_variables" value { string_value: "NEREID_TEST_GIVEN" } }'
    const fixture = await write({
      init_args: {
        file: "triton_arguments",
        config: `${texts} ${parameter} ${inherited} instance_group [{ kind: KIND_CPU }]`,
      },
      on_model: {
        file: "triton_arguments",
        config: `${texts} instance_group [{ kind: KIND_MODEL name: "g" count: 2 }]`,
      },
    })
    const { infer } = await serve(fixture)
    const { outputs } = await infer("init_args", [text("IN", "")])
    const seen = JSON.parse(String(outputs?.[0]?.data[0]))
    expect(seen).toMatchObject({
      model_instance_kind: "CPU",
      model_instance_name: "init_args_0_0",
      model_instance_device_id: "0",
      model_repository: `${fixture.path}/init_args`,
      model_version: "1",
      model_name: "init_args",
      directory: `${fixture.path}/init_args/1`,
      keys: 7,
      types: ["str"],
      parameters: { k: { string_value: "v" } },
      batch: 0,
      input: { name: "IN", data_type: "TYPE_STRING", dims: [1], optional: false },
      environment: ["NEREID_TEST_GIVEN"],
    })
    const other = JSON.parse(String((await infer("on_model", [text("IN", "")])).outputs?.[0]?.data[0]))
    expect(other).toMatchObject({ model_instance_kind: "MODEL", model_instance_device_id: "0" })
    expect(other.model_instance_name).toMatch(/^g_[01]$/)
  })

  it("the code completes the configuration, which the config endpoint shows", async () => {
    const fixture = await write({})
    fixture.write("bare/1/model.py", code("triton_complete"))
    fixture.write("named/1/mymodel.py", code("triton_identity"))
    fixture.write(
      "named/config.pbtxt",
      `default_model_filename: "mymodel.py" backend: "python"
      input { name: "INPUT0" data_type: TYPE_FP32 dims: 4 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: 4 }`,
    )
    const { infer, config } = await serve(fixture)
    const answer = await infer("bare", [numbers("IN", "FP32", [2, 4], [1, 2, 3, 4, 5, 6, 7, 8])])
    expect(answer.outputs).toMatchObject([{ name: "OUT", shape: [2, 4], data: [2, 4, 6, 8, 10, 12, 14, 16] }])
    expect(await config("bare")).toMatchObject({
      backend: "python",
      default_model_filename: "model.py",
      max_batch_size: 4,
      dynamic_batching: { preferred_batch_size: [4] },
      input: [{ name: "IN", data_type: "TYPE_FP32", dims: [4] }],
      output: [{ name: "OUT", data_type: "TYPE_FP32", dims: [4] }],
      instance_group: [{ count: 1, kind: "KIND_CPU" }],
    })
    const own = await infer("named", [numbers("INPUT0", "FP32", [4], [1, 2, 3, 4])])
    expect(own.outputs).toMatchObject([{ name: "OUTPUT0", data: [1, 2, 3, 4] }])
  })

  it("fails to load, with the reason in the index and in the log", async () => {
    const fixture = await write({
      complete_error: { file: "triton_complete" },
      complete_nothing: { file: "triton_complete" },
      complete_wrong: { file: "triton_complete" },
      complete_batch: { file: "triton_complete", config: "max_batch_size: 8" },
      complete_type: {
        file: "triton_complete",
        config: 'input { name: "IN" data_type: TYPE_INT32 dims: 4 }',
      },
      init_error: { file: "triton_life", config: floats },
      init_exit: { file: "triton_life", config: floats },
      init_import: { file: "triton_life", config: floats },
      good: { file: "triton_life", config: floats },
      wrong_flag: {
        file: "triton_life",
        config: `${floats} parameters { key: "FORCE_CPU_ONLY_INPUT_TENSORS" value { string_value: "maybe" } }`,
      },
      no_environment: {
        file: "triton_life",
        config: `${floats} parameters { key: "EXECUTION_ENV_PATH" value { string_value: "/no/such/path" } }`,
      },
      empty_environment: {
        file: "triton_life",
        config: `${floats} parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY" } }`,
      },
      wrong_limit: {
        file: "triton_life",
        config: `${floats} parameters { key: "execute_timeout_seconds" value { string_value: "0" } }`,
      },
      "a;b": { file: "triton_life", config: floats },
    })
    fixture.write("missing/1/.keep", "")
    fixture.write("missing/config.pbtxt", `backend: "python" ${floats}`)
    fixture.write("text/1/model.txt", "")
    fixture.write("text/config.pbtxt", `backend: "python" default_model_filename: "model.txt" ${floats}`)
    fixture.write("outside/1/model.py", "")
    fixture.write("outside/config.pbtxt", `backend: "python" default_model_filename: "../../x.py" ${floats}`)
    const { index, isReady, infer, log } = await serve(fixture)
    const reasons = new Map((await index()).map(({ name, state, reason }) => [name, [state, reason]]))
    const reason = (name: string) => String(reasons.get(name)?.[1])
    expect(reasons.get("good")?.[0]).toBe("READY")
    expect(reason("complete_error")).toContain("name 'undefined_variable' is not defined")
    expect(reason("complete_nothing")).toContain(
      "auto_complete_config function in model 'complete_nothing' must return a valid pb.ModelConfig object.",
    )
    expect(reason("complete_wrong")).toContain("model input 'OTHER' dimension must be integer >= 1, or -1")
    expect(reason("complete_batch")).toContain(
      "configuration specified max_batch_size 8, but in auto-complete-config function for model 'complete_batch' " +
        "specified max_batch_size 4",
    )
    expect(reason("complete_type")).toContain(
      "unable to load model 'complete_type', configuration expects datatype TYPE_INT32 for input 'IN', model provides " +
        "TYPE_FP32",
    )
    expect(reason("init_error")).toContain("name 'lorem_ipsum' is not defined")
    expect(reason("init_exit")).toContain("Stub process 'init_exit_0' is not healthy.")
    expect(reason("init_import")).toMatch(/No module named 'no_such_package'[^]*-m pip install no_such_package/)
    expect(reason("wrong_flag")).toContain("Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: maybe'")
    expect(reason("no_environment")).toContain("Failed to get the canonical path for /no/such/path.")
    expect(reason("empty_environment")).toContain(
      `Path ${fixture.path}/empty_environment/bin/activate does not exist. The Python environment should contain an ` +
        "'activate' script.",
    )
    expect(reason("wrong_limit")).toContain(
      "parameter 'execute_timeout_seconds' must be an integer from 1 to 86400, but '0' was given",
    )
    expect(reason("a;b")).toContain("the name 'a;b' of a model in Python must not contain the character ;")
    expect(reason("missing")).toContain(
      `Failed to preinitialize Python stub: Python model file not found in '${fixture.path}/missing/1/model.py'`,
    )
    expect(reason("text")).toContain("must end in .py")
    expect(reason("outside")).toContain("is not below")
    expect(log()).toContain("Failed to initialize Python stub for auto-complete: ")
    expect(log()).toContain("Failed to initialize Python stub: ")
    expect([await isReady("good"), await isReady("init_error")]).toEqual([true, false])
    expect((await infer("good", [numbers("IN", "FP32", [4], [1, 2, 3, 4])])).outputs?.[0]?.data).toEqual([1, 2, 3, 4])
  })

  it("with a strict configuration, the code completes nothing", async () => {
    const fixture = await write({ strict: { file: "triton_complete", config: floats } })
    fixture.write("bare/1/model.py", code("triton_complete"))
    const { index, config } = await serve(fixture, { autoComplete: false })
    const [bare, strict] = await index()
    expect(bare?.reason).toContain("failed to open text file for read")
    expect(strict?.state).toBe("READY")
    expect(await config("strict")).toMatchObject({ max_batch_size: 0 })
  })

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

  it("errors of execute fail the batch, and errors of a response its request", async () => {
    const batching =
      "max_batch_size: 8 dynamic_batching { preferred_batch_size: 3 max_queue_delay_microseconds: 12000000 }"
    const fixture = await write({
      execute_error: { file: "triton_life", config: `${floats} ${batching}` },
      wrong_model: { file: "triton_life", config: floats },
      not_a_list: { file: "triton_life", config: floats },
      too_few: { file: "triton_life", config: floats },
    })
    const { infer, rpc, metrics } = await serve(fixture)
    const input = [numbers("IN", "FP32", [1, 4], [1, 2, 3, 4])]
    const answers = await Promise.all([1, 2, 3].map(() => infer("execute_error", input)))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 500, 500])
    expect(answers.flatMap(({ error }) => error ?? [])).toEqual([
      "An error occurred during execution",
      "An error occurred during execution",
    ])
    const single = [numbers("IN", "FP32", [4], [1, 2, 3, 4])]
    const wrong = await infer("wrong_model", single)
    expect(wrong.status).toBe(500)
    expect(wrong.error).toMatch(
      /^Failed to process the request\(s\) for model 'wrong_model_0', message: NameError: name 'undefined_name' is not defined\n\nAt:\n {2}.*model\.py\(\d+\): /,
    )
    expect(await metrics()).toContain(
      'nv_inference_request_failure{model="wrong_model",reason="BACKEND",version="1"} 1',
    )
    expect((await infer("not_a_list", single)).error).toContain(
      "Expected a list in the execute return, found type '<class 'str'>'.",
    )
    expect((await infer("too_few", single)).error).toContain(
      "Number of InferenceResponse objects do not match the number of InferenceRequest objects. InferenceRequest(s) " +
        "size is:1, and InferenceResponse(s) size is:0",
    )
    const contents = { fp32Contents: [1, 2, 3, 4] }
    const failed = await failureOf(
      rpc.modelInfer({ modelName: "wrong_model", inputs: [{ name: "IN", datatype: "FP32", shape: [4n], contents }] }),
    )
    expect(failed.code).toBe(13)
    expect(failed.message).toContain("NameError: name 'undefined_name' is not defined")
  })

  it("each error code has its status", async () => {
    const { infer, rpc } = await serve(await write({ codes: { file: "triton_codes", config: texts } }))
    const expected = [
      ["UNKNOWN", 2, 400],
      ["INTERNAL", 13, 500],
      ["NOT_FOUND", 5, 404],
      ["INVALID_ARG", 3, 400],
      ["UNAVAILABLE", 14, 503],
      ["UNSUPPORTED", 12, 501],
      ["ALREADY_EXISTS", 6, 400],
      ["CANCELLED", 1, 400],
    ] as const
    for (const [name, grpcCode, status] of expected) {
      expect(await infer("codes", [text("IN", name)])).toEqual({ status, error: `error code: ${name}` })
      const contents = { bytesContents: [new TextEncoder().encode(name)] }
      const inputs = [{ name: "IN", datatype: "BYTES", shape: [1n], contents }]
      expect(await failureOf(rpc.modelInfer({ modelName: "codes", inputs }))).toEqual({
        code: grpcCode,
        message: `error code: ${name}`,
      })
    }
    expect((await infer("codes", [text("IN", "")])).status).toBe(500)
  })

  it("log lines have the file and line of the model, and obey the settings of the log", async () => {
    const fixture = await write({ fini_error: { file: "triton_life", config: floats } })
    const { infer, request, log, stop } = await serve(fixture)
    await infer("fini_error", [numbers("IN", "FP32", [4], [1, 2, 3, 4])])
    for (const kind of ["Specific", "Info", "Warning", "Error", "Verbose"]) {
      for (const step of ["Initialize", "Execute"]) expect(log()).toContain(`${step}-${kind} Msg!`)
    }
    expect(log()).toMatch(/^W\d{4} \S+ \d+ model\.py:\d+\] Execute-Warning Msg!$/m)
    await request("logging", { log_verbose_level: 0, log_info: false, log_warning: false })
    const before = log().length
    await infer("fini_error", [numbers("IN", "FP32", [4], [1, 2, 3, 4])])
    const after = log().slice(before)
    expect(after).toContain("Execute-Error Msg!")
    expect(after).not.toMatch(/Execute-(Specific|Info|Warning|Verbose) Msg!/)
    await request("logging", { log_info: true })
    await expect
      .poll(async () => {
        await infer("fini_error", [numbers("IN", "FP32", [4], [1, 2, 3, 4])])
        return log().slice(before)
      })
      .toContain("Execute-Info Msg!")
    await stop()
    expect(log()).toContain("name 'undefined_variable' is not defined")
    expect(log()).toContain("Finalize-Info Msg!")
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

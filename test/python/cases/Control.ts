/** Loading of other models by the code of models in Python. */
import { expect } from "vitest"
import { addSub } from "../../fixtures/onnx.ts"
import type { CaseGroup } from "../PythonCase.ts"
import { doubling, texts } from "../PythonRepository.ts"

const attempt = (code: string) => `try:
    ${code}
except pb.TritonModelException as error:
    return str(error)`

const files: CaseGroup["files"] = (fixture) => {
  fixture.write("add_sub/1/model.onnx", addSub("FP32", ["n", 4]))
  fixture.write("add_sub/config.pbtxt", "max_batch_size: 8")
  fixture.write("double/1/.keep", "")
  fixture.write("double/config.pbtxt", doubling)
}

const sync = { file: "triton_sync", config: texts }

export const control: CaseGroup = {
  name: "loading of other models",
  models: { sync },
  files,
  options: { control: "explicit", load: ["sync"] },
  cases: [
    {
      // Before any load of add_sub by itself, which would keep it loaded.
      name: "the models of an ensemble are unloaded with it on request",
      proves: ["P3.control.dependents"],
      run: async ({ run }) => {
        const ready = 'return [pb.is_model_ready("double"), pb.is_model_ready("add_sub")]'
        expect(await run(`pb.load_model("double")\n${ready}`)).toBe("[True, True]")
        await run('pb.unload_model("double")')
        await expect.poll(() => run(ready)).toBe("[False, True]")
        await run('pb.load_model("double")\npb.unload_model("double", unload_dependents=True)')
        await expect.poll(() => run(ready)).toBe("[False, False]")
      },
    },
    {
      name: "load, override, unload, and ask for readiness",
      proves: [
        "P3.control.load",
        "P3.control.config",
        "P3.control.files",
        "P3.control.version",
        "P3.control.unload",
        "P3.control.unknown",
        "P3.control.prefixes",
      ],
      run: async ({ client, run }) => {
        expect(await run('return pb.is_model_ready("sync")')).toBe("True")
        expect(await run('pb.load_model("add_sub")\nreturn pb.is_model_ready("add_sub", "1")')).toBe("True")
        const config = 'config=json.dumps({"backend": "onnxruntime", "max_batch_size": 2})'
        expect(await run(`pb.load_model("add_sub", ${config})`)).toBe("None")
        expect(await client.config("add_sub")).toMatchObject({ max_batch_size: 2 })
        const content = Buffer.from(addSub("FP32", ["n", 4])).toString("hex")
        const withFiles = `files = {"file:1/model.onnx": bytes.fromhex("${content}")}
pb.load_model("add_sub", '{"backend": "onnxruntime", "max_batch_size": 3}', files)
return pb.is_model_ready(model_name="add_sub")`
        expect(await run(withFiles)).toBe("True")
        expect(await client.config("add_sub")).toMatchObject({ max_batch_size: 3 })
        expect(await run('pb.unload_model("add_sub")')).toBe("None")
        await expect.poll(() => run('return pb.is_model_ready("add_sub")')).toBe("False")
        expect(await run(attempt('pb.load_model("unknown")'))).toMatch(
          /^Failed to load model: failed to load 'unknown', failed to poll/,
        )
        expect(await run(attempt('pb.unload_model("sync", 1)'))).toContain("TypeError")
        expect(await run(attempt('pb.is_model_ready("unknown")'))).toMatch(
          /^Failed to check model readiness: Request for unknown model: 'unknown' is not found/,
        )
        expect(await run(attempt('pb.load_model("add_sub", files={"file:1/model.onnx": b""})'))).toMatch(
          /^Failed to load model: /,
        )
      },
    },
    {
      name: "the client loads the caller anew, without its environment and its code",
      run: async ({ client }) => {
        const given = Object(await client.config("sync"))
        const chosen = { ...given, parameters: { EXECUTION_ENV_PATH: { string_value: "/usr" } } }
        expect(await client.load("sync", { config: JSON.stringify(chosen) })).toContain(
          "the configuration of a request cannot choose EXECUTION_ENV_PATH",
        )
        const code = { "file:1/model.py": Buffer.from("x = 1").toString("base64") }
        expect(await client.load("sync", { config: JSON.stringify(given), ...code })).toContain(
          "a script cannot be loaded from the files of a request",
        )
        expect(await client.load("sync", { config: JSON.stringify({ ...given, max_batch_size: 2 }) })).toBe(undefined)
        expect(await client.load("sync")).toBe(undefined)
      },
    },
  ],
}

export const uncontrolled: CaseGroup = {
  name: "loading of other models while clients control no loads",
  models: { sync },
  files,
  cases: [
    {
      name: "is refused",
      proves: ["P3.control.explicit"],
      run: async ({ run }) => {
        const reason = "explicit model load / unload is not allowed if polling is enabled"
        expect(await run(attempt('pb.load_model("add_sub")'))).toBe(`Failed to load model: ${reason}`)
        expect(await run(attempt('pb.unload_model("add_sub")'))).toBe(`Failed to unload model: ${reason}`)
        expect(await run('return pb.is_model_ready("add_sub")')).toBe("True")
      },
    },
  ],
}

/** Backends in Python: one `model.py` in the backend directory runs all models that name its folder. */
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { repository } from "../fixtures/repository.ts"
import { python } from "../fixtures/python.ts"
import { code, scoped, serve, text } from "./PythonRepository.ts"

/** A backend directory with the backend `shared`. */
const backends = async () => {
  const fixture = await scoped(repository)
  fixture.write("shared/model.py", code("triton_backend"))
  fixture.write("shared/backend_part.py", 'NAME = "a part of the backend"')
  return fixture
}

const own = "raise RuntimeError('the file of the model')"

describe.skipIf(python === undefined)("backends in Python", () => {
  it("one runs several models and versions, with the arguments and directories of each", async () => {
    const [directory, models] = [await backends(), await scoped(repository)]
    models.write("one/config.pbtxt", 'backend: "shared" version_policy { all {} }')
    // The file of a model beside its backend is not its code.
    models.write("one/1/model.py", own)
    models.write("one/3/weights.bin", "")
    models.write("two/config.pbtxt", 'backend: "shared" runtime: "model.py"')
    models.write("two/1/weights.bin", "")
    const { infer, config, log } = await serve(models, { python: { backendDirectory: directory.path } })
    const seen = async (path: string) => JSON.parse(String((await infer(path, [text("IN", "")])).outputs?.[0]?.data[0]))
    const shared = { file: join(directory.path, "shared/model.py"), part: "a part of the backend", runtime: "model.py" }
    for (const [model, version] of [
      ["one", "1"],
      ["one", "3"],
      ["two", "1"],
    ] as const) {
      expect(await seen(`${model}/versions/${version}`)).toMatchObject({
        ...shared,
        model_name: model,
        model_version: version,
        model_repository: join(models.path, model),
        directory: join(models.path, model, version),
      })
    }
    // As in Triton, the configuration shows the runtime that was found.
    expect(await config("one")).toMatchObject({ backend: "shared", runtime: "model.py", max_batch_size: 0 })
    expect(log()).not.toContain("not supported")
  })

  it("the directory of the model is that of its configuration, not of the backend", async () => {
    const [directory, models] = [await backends(), await scoped(repository)]
    models.write("m/1/weights.bin", "")
    const environment =
      'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/absent" } }'
    models.write("m/config.pbtxt", `backend: "shared" ${environment}`)
    const { index } = await serve(models, { python: { backendDirectory: directory.path } })
    expect((await index())[0]?.reason).toContain(join(models.path, "m/absent"))
  })

  it("a changed file of the backend is loaded by the next load", async () => {
    const [directory, models] = [await backends(), await scoped(repository)]
    models.write("m/config.pbtxt", 'backend: "shared"')
    models.write("m/1/weights.bin", "")
    const { infer, load } = await serve(models, {
      control: "explicit",
      load: ["m"],
      python: { backendDirectory: directory.path },
    })
    directory.write("shared/backend_part.py", 'NAME = "another part"')
    expect((await load("m")).status).toBe(200)
    expect((await infer("m", [text("IN", "")])).outputs?.[0]?.data[0]).toContain("another part")
  })
})

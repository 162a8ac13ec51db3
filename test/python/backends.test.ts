/** Backends in Python: one `model.py` in the backend directory runs all models that name its folder. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it, onTestFinished } from "vitest"
import { repository } from "../fixtures/repository.ts"
import { python } from "../fixtures/python.ts"
import { nereidWith } from "../Program.ts"
import { dataOf } from "./PythonCase.ts"
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
  // P4.backend.models@both P4.backend.directory@both
  it("one runs several models and versions, with the arguments and directories of each", async () => {
    const [directory, models] = [await backends(), await scoped(repository)]
    models.write("one/config.pbtxt", 'backend: "shared" version_policy { all {} }')
    // The file of a model beside its backend is not its code.
    models.write("one/1/model.py", own)
    models.write("one/3/weights.bin", "")
    models.write("two/config.pbtxt", 'backend: "shared" runtime: "model.py"')
    models.write("two/1/weights.bin", "")
    // Triton would execute a stub that was compiled for the model.
    models.write("two/triton_python_backend_stub", "")
    const { clients, log } = await serve(models, { python: { backendDirectory: directory.path } })
    const shared = {
      file: join(directory.path, "shared/model.py"),
      module: ["model", ""],
      part: "a part of the backend",
      runtime: "model.py",
    }
    for (const client of Object.values(clients)) {
      for (const [model, version] of [
        ["one", "1"],
        ["one", "3"],
        ["two", "1"],
      ] as const) {
        const seen = JSON.parse(String(dataOf(await client.infer(model, [text("IN", "")], { version }))?.[0]))
        expect(seen).toMatchObject({
          ...shared,
          model_name: model,
          model_version: version,
          model_repository: join(models.path, model),
          directory: join(models.path, model, version),
        })
      }
      // As in Triton, the configuration shows the runtime that was found.
      expect(await client.config("one")).toMatchObject({ backend: "shared", runtime: "model.py", max_batch_size: 0 })
    }
    expect(log()).not.toContain("not supported")
    expect(log()).toMatch(/^W.*two\/triton_python_backend_stub is not used/m)
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

  // P4.backend.env@both
  it("the environment packed beside a backend runs its models, unless a model names another one", async () => {
    const [directory, models] = [await backends(), await scoped(repository)]
    const cache = mkdtempSync(join(tmpdir(), "nereid-cache-"))
    const before = process.env["XDG_CACHE_HOME"]
    process.env["XDG_CACHE_HOME"] = cache
    onTestFinished(() => {
      if (before === undefined) delete process.env["XDG_CACHE_HOME"]
      else process.env["XDG_CACHE_HOME"] = before
      rmSync(cache, { recursive: true })
    })
    const environments = await scoped(repository)
    environments.write("packed/bin/activate", "")
    environments.write("packed/bin/python3", `#!/bin/sh\nexec '${python}' "$@"\n`)
    const packed = join(environments.path, "packed")
    execFileSync("chmod", ["+x", join(packed, "bin/python3")])
    const archive = join(directory.path, "shared/pb_exec_env_model.py.tar.gz")
    execFileSync("tar", ["-czf", archive, "-C", packed, "."])
    models.write("packed/config.pbtxt", 'backend: "shared"')
    models.write("packed/1/weights.bin", "")
    const named = `parameters { key: "EXECUTION_ENV_PATH" value { string_value: "${packed}" } }`
    models.write("named/config.pbtxt", `backend: "shared" ${named}`)
    models.write("named/1/weights.bin", "")
    const { clients, log } = await serve(models, { python: { backendDirectory: directory.path } })
    for (const client of Object.values(clients)) {
      const environmentOf = async (model: string) =>
        JSON.parse(String(dataOf(await client.infer(model, [text("IN", "")]))?.[0])).environment
      expect(await environmentOf("packed")).toContain(join(cache, "nereid/python"))
      expect(await environmentOf("named")).toBe(packed)
    }
    expect(log()).toContain(`Using Python execution env ${archive}`)

    const flags = [`--model-repository=${models.path}`, `--backend-directory=${directory.path}`]
    const { output } = await nereidWith({ XDG_CACHE_HOME: cache }, "check", "--json", ...flags).ended
    const { findings } = JSON.parse(output) as { readonly findings: ReadonlyArray<{ readonly name: string }> }
    expect(findings.filter(({ name }) => name === "Python")).toMatchObject([
      { status: "ok", details: { origin: `python: ${packed}`, models: ["named"] } },
      { status: "ok", details: { origin: `python: ${archive}`, models: ["packed"] } },
    ])
    const without = await nereidWith({}, "check", "--json", `--model-repository=${models.path}`).ended
    expect(without.output).toContain("no models in Python in")
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

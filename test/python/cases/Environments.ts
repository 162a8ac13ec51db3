/** Environments of models in Python: folders, and archives with the layout of conda-pack. */
import { execFileSync } from "node:child_process"
import { chmodSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { expect } from "vitest"
import { python } from "../../fixtures/python.ts"
import type { RepositoryFixture } from "../../fixtures/repository.ts"
import type { CaseGroup } from "../PythonCase.ts"
import { parameter, texts } from "../PythonRepository.ts"

const environment = dirname(dirname(python ?? ""))

/**
 * Writes an environment as conda-pack 0.9.2 packs it: `bin/activate` and scripts of `activate.d`, `bin/conda-unpack`,
 * which would replace the placeholder in files, and `conda-meta`. Its Python runs the one of the tests.
 */
const writeCondaEnvironment = (fixture: RepositoryFixture, folder: string): void => {
  const write = (file: string, content: string) => {
    fixture.write(`${folder}/${file}`, content)
    if (file.startsWith("bin/")) chmodSync(join(fixture.path, folder, file), 0o755)
  }
  write("bin/activate", "exit 1\n")
  write("bin/python3.11", `#!/bin/sh\nexec '${python}' "$@"\n`)
  write("bin/conda-unpack", "#!/usr/bin/env python\nraise SystemExit('it was run')\n")
  write("bin/conda_unpack_progress.py", "")
  write("bin/tool", "#!/usr/bin/env python\nprint('a tool of the environment')\n")
  write("etc/conda/activate.d/own.sh", "export NEREID_TEST_ACTIVATED=1\n")
  write("etc/own.conf", "root=/opt/anaconda1anaconda2anaconda3_placeholder\n")
  write("conda-meta/history", "")
  symlinkSync("python3.11", join(fixture.path, folder, "bin/python3"))
  symlinkSync("python3.11", join(fixture.path, folder, "bin/python"))
}

const cache = mkdtempSync(join(tmpdir(), "nereid-cache-"))
process.once("exit", () => rmSync(cache, { recursive: true, force: true }))

const at = (path: string) => ({ file: "triton_sync", config: `${texts} ${parameter("EXECUTION_ENV_PATH", path)}` })

const variables = "VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH PYTHONHOME PATH NEREID_TEST_ACTIVATED".split(" ")

export const environments: CaseGroup = {
  name: "environments of models in Python",
  models: {
    by_path: at(environment),
    below: at("$$TRITON_MODEL_DIRECTORY/env"),
    packed: at("$$TRITON_MODEL_DIRECTORY/env.tar.gz"),
    packed_too: at("$$TRITON_MODEL_DIRECTORY/../packed/env.tar.gz"),
    plain: { file: "triton_sync", config: texts },
  },
  files: (fixture) => {
    process.env["XDG_CACHE_HOME"] = cache
    process.env["CONDA_PREFIX"] = "/conda/of/the/server"
    process.env["PYTHONHOME"] = ""
    symlinkSync(environment, join(fixture.path, "below/env"))
    writeCondaEnvironment(fixture, ".conda")
    const folder = join(fixture.path, ".conda")
    execFileSync("tar", ["-czf", join(fixture.path, "packed/env.tar.gz"), "-C", folder, "bin", "etc", "conda-meta"])
    rmSync(folder, { recursive: true })
  },
  cases: [
    {
      name: "a folder is that of a path, or below the model",
      proves: ["P4.env.folder", "P4.env.directory", "P4.env.log"],
      run: async ({ run, log }) => {
        for (const model of ["by_path", "below"]) {
          expect(await run('return os.environ["VIRTUAL_ENV"]', model)).toBe(environment)
        }
        expect(log()).toContain(`Using Python execution env ${environment}`)
      },
    },
    {
      name: "an archive of conda-pack is unpacked once, and its Python runs the models",
      proves: ["P4.env.archive", "P4.env.variables"],
      run: async ({ run }) => {
        const read = async (model: string) =>
          JSON.parse(
            await run(
              `return json.dumps({name: os.environ.get(name) for name in ${JSON.stringify(variables)}})`,
              model,
            ),
          )
        const seen = await read("packed")
        expect(seen.VIRTUAL_ENV).toMatch(new RegExp(`^${cache}/nereid/python/`))
        expect(seen).toMatchObject({
          CONDA_PREFIX: seen.VIRTUAL_ENV,
          PYTHONHOME: null,
          // Its activate scripts are not run.
          NEREID_TEST_ACTIVATED: null,
        })
        expect(seen.PATH.split(":")[0]).toBe(`${seen.VIRTUAL_ENV}/bin`)
        expect(seen.LD_LIBRARY_PATH.split(":")[0]).toBe(`${seen.VIRTUAL_ENV}/lib`)
        expect((await read("packed_too")).VIRTUAL_ENV).toBe(seen.VIRTUAL_ENV)
        expect((await read("plain")).CONDA_PREFIX).toBe("/conda/of/the/server")
      },
    },
    {
      name: "conda-unpack is not run, and the tools of the archive work without it",
      run: async ({ run }) => {
        const tool = `import subprocess\nreturn subprocess.run(["tool"], capture_output=True, text=True).stdout.strip()`
        expect(await run(tool, "packed")).toBe("a tool of the environment")
        const file = 'return open(os.environ["VIRTUAL_ENV"] + "/etc/own.conf").read().strip()'
        expect(await run(file, "packed")).toBe("root=/opt/anaconda1anaconda2anaconda3_placeholder")
      },
    },
  ],
}

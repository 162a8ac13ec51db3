/** The search for a Python, and its errors. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { python } from "../../../../test/fixtures/python.ts"
import * as Interpreter from "./Interpreter.ts"

let folder = ""

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nereid-interpreter-"))
  for (const name of ["NEREID_PYTHON", "VIRTUAL_ENV"]) vi.stubEnv(name, "")
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

/** When the global lock is on: in every process, or as a free-threaded build was started. */
type Lock = "always" | "on" | "off"

/** A program that answers the probe with these values. */
const fake = (name: string, version: string, numpy: string | null, within = folder, lock: Lock = "always"): string => {
  mkdirSync(within, { recursive: true })
  const path = join(within, name)
  const problem = numpy === null ? "No module named 'numpy'" : ""
  const answer = { executable: path, version, numpy, problem, free: lock !== "always", gil: lock !== "off" }
  writeFileSync(path, `#!/bin/sh\necho '${JSON.stringify(answer).replaceAll("'", "'\\''")}'\n`, { mode: 0o755 })
  return path
}

const find = (path?: string) => Effect.runPromise(Interpreter.find(path))

const problem = (path?: string) => Effect.runPromise(Effect.flip(Interpreter.find(path)))

describe("the interpreter", () => {
  it("is the named executable, or that of NEREID_PYTHON, of VIRTUAL_ENV, of the PATH, in this order", async () => {
    const named = fake("named", "3.9.0", "1.26.0")
    const variable = fake("variable", "3.10.0", "2.0.0")
    const venv = join(folder, "venv")
    const inVenv = fake("python3", "3.11.0", "2.0.0", join(venv, "bin"))
    writeFileSync(join(venv, "pyvenv.cfg"), "")
    const onPath = fake("python3", "3.12.0", "2.0.0", join(folder, "path"))
    vi.stubEnv("PATH", `${dirname(onPath)}:/bin:/usr/bin`)
    expect(await find()).toMatchObject({ executable: onPath, origin: "PATH", variables: {} })
    vi.stubEnv("VIRTUAL_ENV", venv)
    expect(await find()).toMatchObject({ executable: inVenv, origin: "VIRTUAL_ENV", variables: { VIRTUAL_ENV: venv } })
    vi.stubEnv("NEREID_PYTHON", variable)
    expect(await find()).toMatchObject({ executable: variable, origin: "NEREID_PYTHON", version: "3.10.0" })
    expect(await find(named)).toMatchObject({ executable: named, version: "3.9.0", numpy: "1.26.0" })
  })

  it("`python` of the PATH is used where there is no python3", async () => {
    const path = fake("python", "3.12.0", "2.0.0", join(folder, "path"))
    vi.stubEnv("PATH", dirname(path))
    // The fake is a script of this shell.
    vi.stubEnv("PATH", `${dirname(path)}`)
    expect(await find()).toMatchObject({ executable: path })
  })

  it("without numpy is refused with the command that installs it", async () => {
    const path = fake("python", "3.12.0", null)
    expect(await problem(path)).toMatchObject({
      missing: "numpy",
      install: `${path} -m pip install numpy`,
      message: `${path} (python: ${path}) cannot import numpy: No module named 'numpy'. Install it: ${path} -m pip install numpy`,
    })
  })

  it("that is too old is refused", async () => {
    const path = fake("python", "3.8.19", "1.24.0")
    const message = `${path} (python: ${path}) is Python 3.8.19, but models need 3.9 or newer`
    expect(await problem(path)).toMatchObject({ missing: "version", message })
  })

  it("that is not a Python is refused", async () => {
    vi.stubEnv("PATH", folder)
    expect(await problem()).toMatchObject({
      missing: "python",
      message: "cannot run 'python3': it does not exist. Models in Python need Python 3.9 or newer with numpy",
    })
    expect((await problem("/bin/ls")).message).toMatch(/^cannot run '\/bin\/ls': /)
  })

  it("of a folder needs bin/activate, or is a virtual environment", async () => {
    mkdirSync(join(folder, "env"))
    const activate = join(folder, "env/bin/activate")
    expect((await problem(join(folder, "env"))).message).toBe(
      `Path ${activate} does not exist. The Python environment should contain an 'activate' script.`,
    )
    expect((await problem(join(folder, "absent.tar.gz"))).message).toBe(
      `Failed to get the canonical path for ${join(folder, "absent.tar.gz")}.`,
    )
    fake("python3", "3.12.0", "2.0.0", join(folder, "env/bin"))
    writeFileSync(activate, "")
    vi.stubEnv("PATH", "/bin:/usr/bin")
    vi.stubEnv("LD_LIBRARY_PATH", "/other")
    const { variables } = await find(join(folder, "env"))
    expect(variables).toEqual({
      VIRTUAL_ENV: join(folder, "env"),
      CONDA_PREFIX: join(folder, "env"),
      VIRTUAL_ENV_PROMPT: undefined,
      PATH: `${join(folder, "env/bin")}:/bin:/usr/bin`,
      PYTHONHOME: undefined,
      LD_LIBRARY_PATH: `${join(folder, "env/lib")}:/other`,
    })
  })

  it("has threads for instances if it is free-threaded and its global lock is off", async () => {
    const threads = async (lock: Lock) => {
      const path = fake(lock, "3.14.1", "2.4.6", folder, lock)
      return { path, problem: Interpreter.threadsProblem(await find(path)) }
    }
    expect((await threads("off")).problem).toBeUndefined()
    const usual = await threads("always")
    expect(usual.problem).toBe(
      `instances in threads need a free-threaded Python, but ${usual.path} (python: ${usual.path}) is Python 3.14.1 with a global interpreter lock (GIL)`,
    )
    const locked = await threads("on")
    expect(locked.problem).toBe(
      `instances in threads need a free-threaded Python, but ${locked.path} (python: ${locked.path}) is a free-threaded Python 3.14.1 whose global interpreter lock (GIL) PYTHON_GIL or numpy 2.4.6 has enabled`,
    )
  })

  it.skipIf(python === undefined)("of the tests has numpy", async () => {
    const { version, numpy } = await find(python)
    expect([version, numpy]).toEqual([expect.stringMatching(/^3\.\d+\.\d+$/), expect.stringMatching(/^\d+\.\d+/)])
  })
})

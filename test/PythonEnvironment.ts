/**
 * The Python that tests run on: a virtual environment beside them, with the packages of their requirements.txt, made
 * anew when that file changes. Without Python, or without its registry, the result says why: that is no failure.
 */
import { spawnSync } from "node:child_process"
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"

export type Environment =
  | { readonly python: string }
  /** Why the tests cannot run here. */
  | { readonly missing: string }

/**
 * `tests`: the folder of the tests. `oldest`: the oldest Python for which all of requirements.txt have a release.
 * Several test processes may call this at once.
 * @throws Error where the packages cannot be installed although there is Python and its registry answers
 */
export const prepare = (tests: string, oldest: readonly [number, number] = [3, 10]): Environment => {
  const requirements = join(tests, "requirements.txt")
  const folder = join(tests, ".venv")
  const python = join(folder, "bin", "python")
  /** Copy of the requirements file, written after the installation. */
  const installed = join(folder, "requirements.txt")
  const isInstalled = () =>
    existsSync(installed) &&
    readFileSync(installed, "utf8") === readFileSync(requirements, "utf8") &&
    run(python, ["-c", ""], 1).status === 0

  const found = run("python3", ["-c", "import sys; print(*sys.version_info[:2])"], 1)
  if (found.status !== 0) return { missing: "there is no python3" }
  const [major = 0, minor = 0] = found.stdout.split(" ").map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    return { missing: `python3 is ${major}.${minor}, older than ${oldest.join(".")}` }
  }
  if (isInstalled()) return { python }

  console.log(`Installing the packages of requirements.txt into ${folder}`)
  // Built under another name: another process sees an environment that is complete, or none. The commands in its `bin`
  // name the interpreter by the earlier path, so tests run the modules of Python instead.
  const draft = `${folder}-${process.pid}`
  try {
    const made = run("python3", ["-m", "venv", "--clear", draft], 2)
    if (made.status !== 0) {
      return { missing: `python3 cannot make a virtual environment:\n${made.stdout}${made.stderr}` }
    }
    const install = [
      "-m",
      "pip",
      "install",
      "--no-input",
      "--only-binary",
      ":all:",
      "--retries",
      "1",
      "--timeout",
      "20",
    ]
    const pip = join(draft, "bin", "python")
    const { status, stderr } = run(pip, [...install, "--quiet", "--requirement", requirements], 5)
    if (status === null) return { missing: "the Python registry has not sent everything within 5 minutes" }
    if (status !== 0 && unreachable.test(stderr)) return { missing: `the Python registry does not answer:\n${stderr}` }
    if (status !== 0) throw new Error(`The packages cannot be installed:\n${stderr}`)
    copyFileSync(requirements, join(draft, "requirements.txt"))
    if (isInstalled()) return { python }
    rmSync(folder, { recursive: true, force: true })
    renameSync(draft, folder)
    return { python }
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Messages of pip for an unreachable registry, as opposed to a missing package. */
const unreachable = /connection broken by|ConnectTimeoutError|ReadTimeoutError|ProxyError/

const run = (command: string, args: ReadonlyArray<string>, minutes: number) =>
  spawnSync(command, args, { encoding: "utf8", timeout: minutes * 60_000, killSignal: "SIGKILL" })

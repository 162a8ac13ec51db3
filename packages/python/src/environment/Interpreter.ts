/**
 * Finds the Python that runs a model, and checks its version and numpy: the one that is named, or else those of
 * NEREID_PYTHON, VIRTUAL_ENV and the PATH. A successful check is kept for as long as the process runs.
 */
import { execFile } from "node:child_process"
import { existsSync, realpathSync, statSync } from "node:fs"
import { delimiter, join } from "node:path"
import { Data, Effect } from "effect"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as EnvironmentArchive from "./EnvironmentArchive.ts"
import * as ProcessEnvironment from "./ProcessEnvironment.ts"

/** A Python that can run models. */
export interface Interpreter {
  /** Path or name of the executable. */
  readonly executable: string
  readonly version: string
  readonly numpy: string
  /** Whether its threads execute Python code at the same time: a free-threaded build whose global lock is off. */
  readonly isFreeThreaded: boolean
  /** Whether it is a free-threaded build, perhaps with its lock on. */
  readonly hasOptionalLock: boolean
  /** Where it was named, for messages. */
  readonly origin: string
  /** Variables of its virtual environment; an undefined value removes the variable. */
  readonly variables: Readonly<Record<string, string | undefined>>
}

/** No Python can run models, and why. */
export class InterpreterProblem extends Data.TaggedError("InterpreterProblem")<{
  /** The executable that was found; undefined if there is none. */
  readonly executable: string | undefined
  readonly missing: "python" | "version" | "numpy" | "environment"
  /** Command that installs what is missing; undefined if no single command does. */
  readonly install: string | undefined
  readonly message: string
}> {}

/** The oldest version, as major and minor. */
const oldest = [3, 9] as const

const probeTimeout = 60_000

interface Candidate {
  readonly executable: string
  readonly origin: string
  readonly variables: Interpreter["variables"]
}

/** A virtual environment, or an environment of conda. */
const folderCandidate = (folder: string, origin: string): Candidate | InterpreterProblem => {
  const bin = join(folder, "bin")
  const executable = ["python3", "python"].map((name) => join(bin, name)).find((path) => existsSync(path))
  const isVenv = existsSync(join(folder, "pyvenv.cfg"))
  if (!isVenv && !existsSync(join(bin, "activate"))) {
    const rule = "The Python environment should contain an 'activate' script."
    return environmentProblem(`Path ${join(bin, "activate")} does not exist. ${rule}`)
  }
  if (executable === undefined) return environmentProblem(`the Python environment ${folder} has no bin/python3`)
  const { PATH = "", LD_LIBRARY_PATH } = process.env
  const libraries = join(folder, "lib")
  return {
    executable,
    origin,
    variables: {
      VIRTUAL_ENV: folder,
      VIRTUAL_ENV_PROMPT: undefined,
      PATH: PATH === "" ? bin : `${bin}${delimiter}${PATH}`,
      PYTHONHOME: undefined,
      ...(!isVenv && {
        CONDA_PREFIX: folder,
        LD_LIBRARY_PATH: LD_LIBRARY_PATH ? `${libraries}${delimiter}${LD_LIBRARY_PATH}` : libraries,
      }),
    },
  }
}

const environmentProblem = (message: string): InterpreterProblem =>
  new InterpreterProblem({ executable: undefined, missing: "environment", install: undefined, message })

/** The candidate that a path names: an executable, a folder or an archive. */
const named = Effect.fnUntraced(function* (path: string, origin: string) {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined && !path.includes("/")) return { executable: path, origin, variables: {} }
  const canonical = yield* Effect.try({
    try: () => realpathSync(path),
    catch: () => environmentProblem(`Failed to get the canonical path for ${path}.`),
  })
  // An executable keeps its path: a virtual environment is found by it, which is a link to another Python.
  const folder = found?.isDirectory()
    ? canonical
    : /\.(?:tar\.gz|tgz)$/.test(path)
      ? yield* Effect.mapError(EnvironmentArchive.unpack(canonical), ({ message }) => environmentProblem(message))
      : undefined
  if (folder === undefined) return { executable: path, origin, variables: {} }
  const candidate = folderCandidate(folder, origin)
  return candidate instanceof InterpreterProblem ? yield* candidate : candidate
})

/**
 * Finds the interpreter. `path` is an executable, the folder of a virtual environment, or a folder or `.tar.gz` of
 * conda-pack. Default: NEREID_PYTHON, VIRTUAL_ENV, and `python3` or `python` of the PATH.
 */
export const find = Effect.fn("Interpreter.find")(function* (
  path?: string,
): Effect.fn.Return<Interpreter, InterpreterProblem> {
  const { NEREID_PYTHON, VIRTUAL_ENV } = process.env
  if (path !== undefined) return yield* check(yield* named(path, `python: ${path}`))
  if (NEREID_PYTHON) return yield* check(yield* named(NEREID_PYTHON, "NEREID_PYTHON"))
  if (VIRTUAL_ENV) return yield* check(yield* named(VIRTUAL_ENV, "VIRTUAL_ENV"))
  const onPath = (name: string): Candidate => ({ executable: name, origin: "PATH", variables: {} })
  return yield* check(onPath("python3")).pipe(
    Effect.catch((first) =>
      // The problem of python3 tells more, unless only `python` exists.
      Effect.mapError(check(onPath("python")), (second) =>
        first.missing === "python" && second.missing !== "python" ? second : first,
      ),
    ),
  )
})

const known = new Map<string, Interpreter>()

const check = Effect.fnUntraced(function* (candidate: Candidate): Effect.fn.Return<Interpreter, InterpreterProblem> {
  const { executable, variables } = candidate
  // Another PATH may lead to another Python.
  const key = JSON.stringify([executable, executable.includes("/") ? "" : process.env["PATH"]])
  const before = known.get(key)
  if (before !== undefined) return before
  const env = ProcessEnvironment.make({ from: process.env, inherit: [], interpreter: variables, own: {} })
  const probed = yield* probe(executable, env)
  const interpreter = yield* judge(candidate, probed)
  known.set(key, interpreter)
  return interpreter
})

interface Probed {
  readonly executable: string
  readonly version: string
  readonly numpy: string | null
  readonly problem: string
  readonly free: boolean
  readonly gil: boolean
}

const script = `import json, sys, sysconfig
try:
    import numpy
    found, problem = numpy.__version__, ""
except Exception as error:
    found, problem = None, str(error)
free = sysconfig.get_config_var("Py_GIL_DISABLED") == 1
gil = not free or sys._is_gil_enabled()
print(json.dumps({"executable": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3], "numpy": found, "problem": problem, "free": free, "gil": gil}))`

const probe = (executable: string, env: Readonly<Record<string, string>>): Effect.Effect<Probed, InterpreterProblem> =>
  Effect.callback((resume) => {
    const options = { env, timeout: probeTimeout, killSignal: "SIGKILL", maxBuffer: 1024 * 1024 } as const
    const child = execFile(executable, ["-c", script], options, (error, stdout, stderr) => {
      if (error !== null) {
        const text = error.code === "ENOENT" ? "it does not exist" : stderr.trim() || error.message
        return resume(Effect.fail(notPython(executable, text)))
      }
      try {
        resume(Effect.succeed(JSON.parse(stdout.trim().split("\n").at(-1) ?? "")))
      } catch (error) {
        resume(Effect.fail(notPython(executable, errorMessage(error))))
      }
    })
    child.stdin?.end()
  })

const notPython = (executable: string, reason: string): InterpreterProblem =>
  new InterpreterProblem({
    executable: undefined,
    missing: "python",
    install: undefined,
    message: `cannot run '${executable}': ${reason}. Models in Python need Python ${oldest.join(".")} or newer with numpy`,
  })

const judge = (
  { executable, origin, variables }: Candidate,
  { executable: path, version, numpy, problem, free, gil }: Probed,
): Effect.Effect<Interpreter, InterpreterProblem> => {
  const shown = path === "" ? executable : path
  const [major = 0, minor = 0] = version.split(".").map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    const message = `${shown} (${origin}) is Python ${version}, but models need ${oldest.join(".")} or newer`
    return Effect.fail(new InterpreterProblem({ executable: shown, missing: "version", install: undefined, message }))
  }
  if (numpy === null) {
    const install = `${shown} -m pip install numpy`
    const message = `${shown} (${origin}) cannot import numpy: ${problem}. Install it: ${install}`
    return Effect.fail(new InterpreterProblem({ executable: shown, missing: "numpy", install, message }))
  }
  return Effect.succeed({
    executable: shown,
    version,
    numpy,
    isFreeThreaded: free && !gil,
    hasOptionalLock: free,
    origin,
    variables,
  })
}

/** Why instances cannot be threads of this Python; undefined if they can. */
export const threadsProblem = ({
  executable,
  origin,
  version,
  numpy,
  isFreeThreaded,
  hasOptionalLock,
}: Interpreter): string | undefined => {
  if (isFreeThreaded) return undefined
  const lock = hasOptionalLock
    ? `a free-threaded Python ${version} whose global interpreter lock (GIL) PYTHON_GIL or numpy ${numpy} has enabled`
    : `Python ${version} with a global interpreter lock (GIL)`
  return `instances in threads need a free-threaded Python, but ${executable} (${origin}) is ${lock}`
}

/** Checks the Python that models in Python would run on: that of the machine, or those of a repository's models. */
import { Effect, Result } from "effect"
import * as Interpreter from "@nereid/python/internal/environment/Interpreter"
import * as PythonModels from "@nereid/repository/internal/python/PythonModels"
import type { CheckedModels } from "./CheckedModels.ts"
import type { Finding } from "./Finding.ts"

const name = "Python"

/** Without directories, a missing Python is a note: only models in Python need it. */
export const check = async ({
  repositories: directories,
  backendDirectory,
}: CheckedModels): Promise<ReadonlyArray<Finding>> => {
  if (directories.length === 0) return [await one(undefined, [], "note")]
  const read = await Effect.runPromise(
    Effect.result(Effect.forEach(directories, (directory) => PythonModels.read(directory, backendDirectory))),
  )
  if (Result.isFailure(read)) return [{ name, status: "failed", message: read.failure.message }]
  const models = read.success.flat()
  if (models.length === 0) {
    return [
      { name, status: "ok", message: `no models in Python in ${directories.join(", ")}`, details: { models: [] } },
    ]
  }
  const environments = new Map<string | undefined, Array<PythonModels.PythonModel>>()
  for (const model of models) {
    environments.set(model.environment, [...(environments.get(model.environment) ?? []), model])
  }
  const findings: Array<Finding> = []
  for (const [environment, used] of environments) findings.push(await one(environment, used, "failed"))
  return findings
}

const one = async (
  environment: string | undefined,
  users: ReadonlyArray<PythonModels.PythonModel>,
  missing: "note" | "failed",
): Promise<Finding> => {
  const models = users.map((model) => model.name)
  const found = await Effect.runPromise(Effect.result(Interpreter.find(environment)))
  const used = models.length === 0 ? "" : `, for ${models.join(", ")}`
  if (Result.isSuccess(found)) {
    const { executable, version, numpy, origin, isFreeThreaded } = found.success
    const details = { executable, version, numpy, origin, isFreeThreaded, models }
    const threaded = users.filter(({ inThreads }) => inThreads).map((model) => model.name)
    const lock = threaded.length === 0 ? undefined : Interpreter.threadsProblem(found.success)
    if (lock !== undefined) return { name, status: missing, message: `${lock}, for ${threaded.join(", ")}`, details }
    const kind = isFreeThreaded ? ", free-threaded," : ""
    return {
      name,
      status: "ok",
      message: `${version}${kind} with numpy ${numpy}: ${executable} (${origin})${used}`,
      details,
    }
  }
  const { executable, install, message, missing: part } = found.failure
  const needed = models.length === 0 ? ". Only models in Python need it" : `${used}`
  return {
    name,
    status: missing,
    message: `${message}${needed}`,
    details: { executable, missing: part, install, models },
  }
}

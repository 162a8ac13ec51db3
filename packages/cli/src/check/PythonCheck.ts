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
  const environments = new Map<string | undefined, Array<string>>()
  for (const { name: model, environment } of models) {
    environments.set(environment, [...(environments.get(environment) ?? []), model])
  }
  const findings: Array<Finding> = []
  for (const [environment, names] of environments) findings.push(await one(environment, names, "failed"))
  return findings
}

const one = async (
  environment: string | undefined,
  models: ReadonlyArray<string>,
  missing: "note" | "failed",
): Promise<Finding> => {
  const found = await Effect.runPromise(Effect.result(Interpreter.find(environment)))
  const used = models.length === 0 ? "" : `, for ${models.join(", ")}`
  if (Result.isSuccess(found)) {
    const { executable, version, numpy, origin } = found.success
    const message = `${version} with numpy ${numpy}: ${executable} (${origin})${used}`
    return { name, status: "ok", message, details: { executable, version, numpy, origin, models } }
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

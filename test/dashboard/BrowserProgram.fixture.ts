/** Finds the program of a browser. */
import { accessSync, constants } from "node:fs"
import { delimiter, join } from "node:path"

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The path in an environment variable, or the first of the usual names on the PATH; undefined if there is none. */
export const browserProgram = (variable: string, names: ReadonlyArray<string>): string | undefined =>
  process.env[variable] ??
  names
    .flatMap((name) => (process.env["PATH"] ?? "").split(delimiter).map((folder) => join(folder, name)))
    .find(isProgram)

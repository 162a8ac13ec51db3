/**
 * Whether `nereid` runs as one bundle, which starts in half of the time and with 25 to 35 MB less than its packages.
 * The bundle has its own copy of Effect and of the packages, so code of users needs the packages: it would have two
 * copies. Only `nereid serve` of directories without such code, which are never read again, uses the bundle. In doubt,
 * the packages run.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Flags of `serve`, without their dashes, that change which code is loaded, or when. */
const excluded =
  /^(?:watch|single-model|load-model|backend-directory|repository-poll-secs|strict-model-config|model-.*)$/

const repository = "--model-repository"

/** Environment variables of the same flags. */
const excludedVariable = /^NEREID_(?:WATCH|SINGLE|LOAD|BACKEND|REPOSITORY|STRICT|MODEL)/

/** Models beyond this number are not examined. */
const maxModels = 100

export const isPossible = (args: ReadonlyArray<string>, variables: NodeJS.ProcessEnv): boolean => {
  if (Object.keys(variables).some((name) => excludedVariable.test(name))) return false
  const directories = repositories(args)
  return directories !== undefined && directories.length > 0 && directories.every(isWithoutCode)
}

/** The directories of `serve`; undefined for any other command, and for arguments that may name a module. */
const repositories = ([command, ...args]: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
  if (command !== "serve") return undefined
  const found: Array<string> = []
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ""
    const [, name = ""] = /^--([^=]+)/.exec(arg) ?? []
    const next = args[index + 1]
    if (arg.startsWith(`${repository}=`)) found.push(arg.slice(repository.length + 1))
    else if (arg === repository && next !== undefined) {
      found.push(next)
      index += 1
    } else if (name === "" || excluded.test(name)) return undefined
    // The next argument may be the value of this flag, or a module.
    else if (!arg.includes("=") && next !== undefined && !next.startsWith("-")) return undefined
  }
  return found
}

/** Whether no model of a local directory can have code in JavaScript or TypeScript. */
const isWithoutCode = (directory: string): boolean => {
  try {
    const models = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isFile())
    return models.length <= maxModels && models.every(({ name }) => isModelWithoutCode(join(directory, name)))
  } catch {
    return false
  }
}

const isModelWithoutCode = (directory: string): boolean => {
  const config = join(directory, "config.pbtxt")
  if (existsSync(config) && readFileSync(config, "utf8").includes("nereid")) return false
  const versions = readdirSync(directory, { withFileTypes: true }).filter((entry) => !entry.isFile())
  return versions.every(({ name }) => !readdirSync(join(directory, name)).some((file) => /\.[cm]?[jt]s$/u.test(file)))
}

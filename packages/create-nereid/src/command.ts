/** The command line of `create-nereid`. Creates a workspace, or exits with 1 and one line that says why not. */
import { parseArgs } from "node:util"
import * as Workspace from "./Workspace.ts"
import { reason, WorkspaceError } from "./WorkspaceError.ts"

const usage = "Usage: npm create nereid NAME [-- --packages DIRECTORY]"

const help = `${usage}

Creates a workspace with a typed model, its server, its client and their tests.

  NAME                  Name of the directory to create, and scope of the packages in it;
                        . for the current directory if it is empty
  --packages DIRECTORY  Directory of tarballs of Nereid's packages, which the workspace installs instead of those on npm
  --help                Print this text`

const options = { packages: { type: "string" }, help: { type: "boolean" } } as const

/** @throws WorkspaceError for an invalid command line as well */
const run = (args: ReadonlyArray<string>): string => {
  const { values, positionals } = parse(args)
  if (values.help === true) return help
  const [name, ...others] = positionals
  if (name === undefined) throw new WorkspaceError(`The name of the workspace is missing\n${usage}`)
  if (others.length > 0) throw new WorkspaceError(`Expected one name, got ${positionals.join(", ")}\n${usage}`)
  return Workspace.create({ name, parent: process.cwd(), packages: values.packages })
}

const parse = (args: ReadonlyArray<string>) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    throw new WorkspaceError(`${reason(error)}\n${usage}`)
  }
}

try {
  console.log(run(process.argv.slice(2)))
} catch (error) {
  if (!(error instanceof WorkspaceError)) throw error
  console.error(`Error: ${error.message}`)
  process.exitCode = 1
}

/**
 * Creates a workspace: a contract, a server, a client and their tests, as npm packages. `create-nereid` and
 * `nereid init` are this function with different command lines.
 */
import { lstatSync, readdirSync, readFileSync } from "node:fs"
import { basename, resolve } from "node:path"
import * as NewFiles from "./NewFiles.ts"
import * as Tarballs from "./Tarballs.ts"
import * as Template from "./Template.ts"
import { attempt, WorkspaceError } from "./WorkspaceError.ts"
import * as WorkspaceName from "./WorkspaceName.ts"

export interface Options {
  /** The folder to make in `parent`, or `.` for `parent` itself. */
  readonly name: string
  readonly parent: string
  /** Folder of archives to install in place of the packages on npm. Default: none. */
  readonly packages?: string | undefined
}

const manifest: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
)

/**
 * Writes the workspace, and returns what to tell its user: the commands to run next.
 *
 * @throws WorkspaceError for a name that is not allowed, a directory that is not empty, or files that cannot be
 *   written. Then no file is left.
 */
export const create = ({ name: given, parent, packages }: Options): string => {
  const folder = resolve(parent, given === "." ? "" : given)
  const name = given === "." ? basename(folder) : given
  WorkspaceName.check(name)
  checkEmpty(folder)
  const { version } = manifest
  const overrides = packages === undefined ? undefined : Tarballs.overrides(resolve(parent, packages), version)
  NewFiles.write(folder, Template.files({ name, version, overrides }))
  return nextSteps(name, given !== ".")
}

/** @throws WorkspaceError for a directory with other entries than a Git repository, or what is no directory */
const checkEmpty = (folder: string): void => {
  const entries = entriesOf(folder).filter((entry) => entry !== ".git")
  if (entries.length === 0) return
  const shown = entries.length > 3 ? [...entries.slice(0, 3), `${entries.length - 3} more`] : entries
  throw new WorkspaceError(
    `${folder} is not empty, it has ${shown.join(", ")}: use another name, or an empty directory`,
  )
}

const entriesOf = (folder: string): ReadonlyArray<string> =>
  attempt(`Cannot use ${folder}`, () => {
    // A symbolic link to nothing is an entry as well.
    if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return []
    return readdirSync(folder)
  })

const nextSteps = (name: string, isBelow: boolean): string =>
  [
    `Created ${name}. Next:`,
    "",
    ...(isBelow ? [`  cd ${name}`] : []),
    "  npm install",
    "  npm test              # tests the model alone, then the client with a server",
    "  npm start             # serves HTTP on 8000, gRPC on 8001 and metrics on 8002",
    "  npm run client hello  # in another terminal: prints HELLO",
    "",
    "README.md explains the packages, and how to build an image for Docker.",
  ].join("\n")

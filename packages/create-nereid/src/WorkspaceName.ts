/** Names of workspaces. A name is that of the folder, of the root package, and of the scope of the packages in it. */
import { WorkspaceError } from "./WorkspaceError.ts"

/** The longest package is `@NAME/contract`, and npm allows 214 characters. */
const maxLength = 214 - "@/contract".length

/** Device names of Windows. A folder cannot have them, with any extension. */
const device = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/

/** Names that are taken, with the reason. */
const reserved: ReadonlyMap<string, string> = new Map([
  ["nereid", "its packages would have names of Nereid's own, such as @nereid/server"],
  ["node_modules", "npm uses it"],
  ["favicon.ico", "npm does not allow it"],
])

/** @throws WorkspaceError for a name that npm, Docker or a file system refuses */
export const check = (name: string): void => {
  const problem = problemOf(name)
  if (problem === undefined) return
  const shown = name.length > 50 ? `${name.slice(0, 50)}…` : name
  throw new WorkspaceError(`${JSON.stringify(shown)} cannot be the name of a workspace: ${problem}`)
}

const problemOf = (name: string): string | undefined => {
  if (/[/\\]/.test(name)) return "it is a path; change to the parent directory, and give the name alone"
  if (name.length > maxLength) return `it has ${name.length} characters, the maximum is ${maxLength}`
  if (!/^[a-z0-9]+(?:[._-][a-z0-9]+)*$/.test(name) && !reserved.has(name)) {
    return "use lower-case letters and digits, with single '-', '_' or '.' between them, as in my-models"
  }
  if (device.test(name)) return "Windows reserves it for a device"
  return reserved.get(name)
}

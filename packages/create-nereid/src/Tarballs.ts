/** Archives of Nereid's packages in a folder, such as `dist` of its repository, in place of those on npm. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { attempt, WorkspaceError } from "./WorkspaceError.ts"

/**
 * Returns `file:` addresses by package, for `overrides` of a package.json.
 *
 * @throws WorkspaceError if the folder has no archive of this version
 */
export const overrides = (folder: string, version: string): Readonly<Record<string, string>> => {
  const suffix = `-${version}.tgz`
  const names = attempt(`Cannot read ${folder}`, () => readdirSync(folder).toSorted())
  const found = names.flatMap((file) => {
    const [, name] = /^nereid-([a-z][a-z0-9]*)-/.exec(file) ?? []
    if (name === undefined || file !== `nereid-${name}${suffix}`) return []
    return [[`@nereid/${name}`, `file:${join(folder, file).replaceAll("\\", "/")}`] as const]
  })
  if (found.length > 0) return Object.fromEntries(found)
  throw new WorkspaceError(`${folder} has no nereid-*${suffix}: run "npm run build" in the repository of Nereid`)
}

/**
 * Writes files that do not exist yet: all of them or none. An existing file is an error and never overwritten, and
 * after an error everything that was written is removed.
 */
import { closeSync, existsSync, mkdirSync, openSync, rmdirSync, unlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { TemplateFile } from "./Template.ts"
import { reason, WorkspaceError } from "./WorkspaceError.ts"

/** Undoes one step. */
interface Written {
  readonly path: string
  readonly remove: (path: string) => void
}

/** @throws WorkspaceError if one of them exists or cannot be written */
export const write = (folder: string, files: ReadonlyArray<TemplateFile>): void => {
  const written: Array<Written> = []
  try {
    for (const file of files) {
      const path = join(folder, file.path)
      makeFolder(dirname(path), written)
      const descriptor = openSync(path, "wx")
      written.push({ path, remove: unlinkSync })
      try {
        writeFileSync(descriptor, file.text)
      } finally {
        closeSync(descriptor)
      }
    }
  } catch (error) {
    const left = written.toReversed().filter((step) => !isUndone(step))
    const rest = left.length === 0 ? "" : `; these remain: ${left.map(({ path }) => path).join(", ")}`
    throw new WorkspaceError(`Cannot write ${folder}: ${reason(error)}${rest}`)
  }
}

/** Makes a folder with those above it, and adds each to `written`, so that all can be removed again. */
const makeFolder = (path: string, written: Array<Written>): void => {
  if (existsSync(path)) return
  makeFolder(dirname(path), written)
  mkdirSync(path)
  written.push({ path, remove: rmdirSync })
}

const isUndone = ({ path, remove }: Written): boolean => {
  try {
    remove(path)
    return true
  } catch {
    return false
  }
}

/**
 * Removes the temporary directories of OverrideDirectory.ts whose process was killed. They must be this user's, and
 * marked by a process that is gone. Links are never followed.
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import * as Files from "@nereid/onnx/internal/file/Files"
import { Effect } from "effect"
import { lstat, rm } from "node:fs/promises"
import { join } from "node:path"
import * as DirectoryOwner from "./DirectoryOwner.ts"
import * as OverrideDirectory from "./OverrideDirectory.ts"

/** Removes those in a folder for temporary files. Problems are logged. */
export const remove = Effect.fn("AbandonedDirectories.remove")(function* (folder: string) {
  const entries = yield* Effect.orElseSucceed(Files.list(folder), () => [])
  const paths = entries
    .filter(({ name, kind }) => kind === "directory" && OverrideDirectory.isName(name))
    .map(({ name }) => join(folder, name))
  for (const path of paths) {
    yield* Effect.tryPromise({ try: () => removeOne(path), catch: errorMessage }).pipe(
      Effect.flatMap((isRemoved) =>
        isRemoved ? Effect.logInfo(`Removed ${path}, which a killed process has left`) : Effect.void,
      ),
      Effect.catch((problem) =>
        Effect.logWarning(`Cannot remove ${path}, which a killed process has left: ${problem}`),
      ),
    )
  }
})

const removeOne = async (path: string): Promise<boolean> => {
  if (!(await isOwn(path)) || !(await DirectoryOwner.isGone(path))) return false
  // Unlinks the links in it.
  await rm(path, { recursive: true, force: true })
  return true
}

/** Whether the directory is one of this user, and no other user can have changed it. */
const isOwn = async (path: string): Promise<boolean> => {
  const found = await lstat(path)
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
}

/** A workspace could not be created. The message gives the reason, and no file is left. */
export class WorkspaceError extends Error {
  readonly _tag = "WorkspaceError"
}

/** Runs a step. An error of it becomes one that says which step failed, such as "Cannot read /models". */
export const attempt = <A>(failure: string, step: () => A): A => {
  try {
    return step()
  } catch (error) {
    throw new WorkspaceError(`${failure}: ${reason(error)}`)
  }
}

export const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error))

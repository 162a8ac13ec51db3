/** The models whose Python `nereid check` looks for. */

export interface CheckedModels {
  /** Directories of model repositories. */
  readonly repositories: ReadonlyArray<string>
  /** Directory of backends in Python; undefined without one. */
  readonly backendDirectory: string | undefined
}

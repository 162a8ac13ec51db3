/** Why Python code does not become an instance of a model. */
import { Data } from "effect"

/** A model in Python cannot start: its interpreter, its file, its signature, or `initialize`. */
export class PythonLoadError extends Data.TaggedError("PythonLoadError")<{
  readonly model: string
  /** Path of the Python file. */
  readonly file: string
  /** Path of the interpreter; undefined if none was found. */
  readonly python: string | undefined
  /** Reason, without the names of the model, its file and the interpreter. */
  readonly reason: string
  /** The module that cannot be imported; undefined for another reason. */
  readonly missing: string | undefined
  readonly message: string
}> {}

export interface LoadProblem {
  readonly model: string
  readonly file: string
  readonly python: string | undefined
}

export const make = ({ model, file, python }: LoadProblem, reason: string, missing?: string): PythonLoadError => {
  const using = python === undefined ? "" : ` with ${python}`
  return new PythonLoadError({
    model,
    file,
    python,
    reason,
    missing,
    message: `cannot load model '${model}' from '${file}'${using}: ${reason}`,
  })
}

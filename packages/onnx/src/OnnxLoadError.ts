/**
 * Why a model could not be provided from its file: the file cannot be read, the runtime refuses it, its signature is not
 * the declared one, or no execution provider is there. Failures of a running model are core's InferenceError.
 */
import { Data } from "effect"

export class OnnxLoadError extends Data.TaggedError("OnnxLoadError")<{
  /** Names the model and the file. */
  readonly message: string
  readonly file: string
  /** One line per tensor that is not as declared; empty where the signature is not the reason. */
  readonly mismatches: ReadonlyArray<string>
}> {}

/** @param reason follows the names of the model and the file */
export const make = (model: string, file: string, reason: string, mismatches: ReadonlyArray<string> = []) =>
  new OnnxLoadError({ message: `cannot load model '${model}' from '${file}': ${reason}`, file, mismatches })

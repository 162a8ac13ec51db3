/**
 * Error of a model that cannot be loaded: an unreadable file, a file that ONNX Runtime refuses, a different signature,
 * or a missing execution provider. A running model fails with an InferenceError of core instead.
 */
import { Data } from "effect"

/** An .onnx file cannot be loaded, or its signature is not the declared one. */
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

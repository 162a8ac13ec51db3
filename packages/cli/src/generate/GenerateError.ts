/** Error of `nereid generate` for the user: no contract could be generated, or the file differs from it. */
import { Data } from "effect"

export class GenerateError extends Data.TaggedError("GenerateError")<{ readonly message: string }> {}

/** Combines the problems of several models in one error. */
export const ofModels = (problems: ReadonlyArray<readonly [model: string, problem: string]>): GenerateError =>
  new GenerateError({ message: problems.map(([model, problem]) => `model '${model}': ${problem}`).join("\n") })

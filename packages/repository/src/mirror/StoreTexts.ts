/** Triton's texts for the problems of each store. */
import { reason, type StoreProblem } from "../storage/http/StoreProblem.ts"
import type { StorageUrl } from "../storage/store/StorageUrl.ts"

export interface StoreTexts {
  /** The objects could not be listed. */
  readonly list: (problem: StoreProblem) => string
  /** An object could not be read. `url`: of its model. */
  readonly get: (url: string, problem: StoreProblem) => string
}

const clients = { s3: "S3 filesystem", gs: "GCS", as: "Azure filesystem", hf: "Hugging Face" }

export const make = (url: StorageUrl): StoreTexts => ({
  list: (problem) => {
    if (problem.code === "NoMatch") return problem.message
    if (problem.kind === "denied") {
      const cause = `Exception: '${problem.code}' Message: '${problem.message}'`
      return `Unable to create ${clients[url.kind]} client. Check account credentials. ${cause}`
    }
    return url.kind === "s3"
      ? `Could not get MetaData for bucket with name ${url.bucket} due to exception: ${reason(problem)}`
      : `Failed to list ${url.shown} due to exception: ${reason(problem)}`
  },
  get: (model, problem) => `Failed to get object at ${model} due to exception: ${reason(problem)}`,
})

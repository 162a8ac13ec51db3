/** A model of the repository that the cases ask which is refused. */
import type { RepositoryLineName } from "./RepositoryLines.ts"

export interface Broken {
  readonly config: string | Uint8Array
  /** Default `1/model.onnx`, X → Y of FP32["n",1]. */
  readonly files?: { readonly [file: string]: string | Uint8Array }
  /** A part of it. */
  readonly reason: string | RegExp
  readonly proves?: ReadonlyArray<RepositoryLineName>
}

/** Versions that the index has of one of them. */
export const versionOf = ({ files = { "1/model.onnx": "" } }: Broken): string | undefined =>
  Object.keys(files).some((file) => file.startsWith("1/")) ? "1" : undefined

/** A model of the test repository that cannot be loaded. */
import type { RepositoryLineName } from "./RepositoryLines.ts"

export interface BrokenModel {
  readonly config: string | Uint8Array
  /** Default `1/model.onnx`, X → Y of FP32["n",1]. */
  readonly files?: { readonly [file: string]: string | Uint8Array }
  /** A part of it. */
  readonly reason: string | RegExp
  /** Whether its configuration is wrong before versions are chosen, which a load has other words for. */
  readonly isUnreadable?: boolean
  /** Whether `reason` is all that Triton says: measured, or by its sources. */
  readonly isWhole?: boolean
  /** Triton's name of the status of a version that fails; absent if no version does. */
  readonly status?: "Invalid argument" | "Internal"
  readonly proves?: ReadonlyArray<RepositoryLineName>
}

/** Versions that the index has of one of them. */
export const versionOf = ({ files = { "1/model.onnx": "" } }: BrokenModel): string | undefined =>
  Object.keys(files).some((file) => file.startsWith("1/")) ? "1" : undefined

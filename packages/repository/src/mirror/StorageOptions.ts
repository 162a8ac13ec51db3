/** Settings of repositories in object storage, and the directory of their cache. */
import { homedir, tmpdir, userInfo } from "node:os"
import { join } from "node:path"
import type { Environment } from "../storage/credential/Environment.ts"
import type { StorageUrl } from "../storage/store/StorageUrl.ts"

/** Settings of repositories in object storage. */
export interface StorageOptions {
  /**
   * Directory that keeps downloaded objects between starts. Default: the variable `TRITON_AWS_MOUNT_DIRECTORY`,
   * `TRITON_GCS_MOUNT_DIRECTORY` or `TRITON_AZURE_MOUNT_DIRECTORY` of the store, or `nereid/models` in the folder that
   * the user has for caches.
   */
  readonly cacheDirectory?: string
  /** Maximum bytes of the objects in that directory. A load that needs more fails. Default 64 GiB. */
  readonly maxCacheBytes?: number
  /** Bytes of one request for a part of a large object. Default 16 MiB. */
  readonly rangeBytes?: number
  /** Variables that choose credentials and endpoints. Default: those of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

/** Bytes of objects that a cache keeps. */
export const defaultMaxCacheBytes = 64 * 1024 * 1024 * 1024

const mountVariables: Readonly<Record<StorageUrl["kind"], string | undefined>> = {
  s3: "TRITON_AWS_MOUNT_DIRECTORY",
  gs: "TRITON_GCS_MOUNT_DIRECTORY",
  as: "TRITON_AZURE_MOUNT_DIRECTORY",
  hf: undefined,
}

/** Directories to try, the first that can be written to. */
export const cacheDirectories = (
  kind: StorageUrl["kind"],
  { cacheDirectory }: StorageOptions,
  environment: Environment,
): readonly [string, ...ReadonlyArray<string>] => {
  const variable = mountVariables[kind]
  const chosen = cacheDirectory ?? (variable === undefined ? undefined : environment[variable])
  if (chosen !== undefined && chosen !== "") return [chosen]
  const caches = environment["XDG_CACHE_HOME"] || join(environment["HOME"] || homedir(), ".cache")
  // A container may have no home, or one that is read-only.
  return [join(caches, "nereid/models"), join(tmpdir(), `nereid-models-${userInfo().uid}`)]
}

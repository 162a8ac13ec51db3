/** The repositories that a server is given: directories on disk, and mirrors of object storage. */
import { Effect, Result, type Scope } from "effect"
import { lstat } from "node:fs/promises"
import { resolve } from "node:path"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as LocalDirectory from "../directory/LocalDirectory.ts"
import type { RepositoryDirectory } from "../directory/RepositoryDirectory.ts"
import * as CacheViews from "../storage/cache/CacheViews.ts"
import * as ObjectCache from "../storage/cache/ObjectCache.ts"
import * as CloudCredentialFile from "../storage/credential/CloudCredentialFile.ts"
import type { Environment } from "../storage/credential/Environment.ts"
import { AzureStore } from "../storage/store/AzureStore.ts"
import { GoogleStore } from "../storage/store/GoogleStore.ts"
import { HubStore } from "../storage/store/HubStore.ts"
import type { ObjectStore } from "../storage/store/ObjectStore.ts"
import { S3Store } from "../storage/store/S3Store.ts"
import * as StorageUrl from "../storage/store/StorageUrl.ts"
import { Mirror } from "./Mirror.ts"
import { cacheDirectories, defaultMaxCacheBytes, type StorageOptions } from "./StorageOptions.ts"
import * as StoreTexts from "./StoreTexts.ts"

interface OpenCache {
  readonly cache: ObjectCache.ObjectCache
  readonly views: CacheViews.CacheViews
}

/** Opens them; a repository that is given twice counts once. */
export const open = Effect.fnUntraced(function* (
  directories: ReadonlyArray<string>,
  singleModel: string | undefined,
  options: StorageOptions = {},
): Effect.fn.Return<ReadonlyArray<RepositoryDirectory>, LoadFailure, Scope.Scope> {
  const found = new Map<string, RepositoryDirectory>()
  const caches = new Map<string, OpenCache>()
  for (const directory of directories) {
    if (!StorageUrl.isUrl(directory)) {
      const local = LocalDirectory.make(directory, singleModel)
      found.set(local.path, local)
      continue
    }
    const url = yield* Effect.mapError(
      Effect.fromResult(StorageUrl.parse(directory)),
      (message) => new LoadFailure({ message }),
    )
    if (found.has(url.shown)) continue
    const environment = options.environment ?? process.env
    const { cache, views } = yield* openCache(url.kind, options, environment, caches)
    const store = storeOf(url, environment)
    const texts = StoreTexts.make(url)
    const isRoot = url.path === ""
    found.set(url.shown, new Mirror({ url: url.shown, isRoot, texts, store, cache, views, singleModel }))
  }
  return [...found.values()]
})

const storeOf = (url: StorageUrl.StorageUrl, environment: Environment): ObjectStore => {
  if (url.kind === "hf") return new HubStore({ ...url, environment })
  const variables = CloudCredentialFile.apply(environment, url.kind, url.shown)
  switch (url.kind) {
    case "s3":
      return new S3Store({ ...url, environment: variables })
    case "gs":
      return new GoogleStore({ ...url, environment: variables })
    case "as":
      return new AzureStore({ ...url, environment: variables })
  }
}

const openCache = Effect.fnUntraced(function* (
  kind: StorageUrl.StorageUrl["kind"],
  options: StorageOptions,
  environment: Environment,
  caches: Map<string, OpenCache>,
): Effect.fn.Return<OpenCache, LoadFailure, Scope.Scope> {
  const [first, ...others] = cacheDirectories(kind, options, environment)
  let problem = ""
  for (const directory of [first, ...others].map((one) => resolve(one))) {
    const known = caches.get(directory)
    if (known !== undefined) return known
    const opened = yield* Effect.result(openIn(directory, options, directory !== resolve(first)))
    if (Result.isSuccess(opened)) {
      if (problem !== "") yield* Effect.logWarning(`${problem}. Models are kept in ${directory} instead`)
      caches.set(directory, opened.success)
      return opened.success
    }
    problem = problem === "" ? opened.failure.message : problem
  }
  return yield* new LoadFailure({ message: problem })
})

/** `isShared`: in a folder where other users can write, so that it must be this user's. */
const openIn = Effect.fnUntraced(function* (
  directory: string,
  { maxCacheBytes = defaultMaxCacheBytes, rangeBytes }: StorageOptions,
  isShared: boolean,
): Effect.fn.Return<OpenCache, LoadFailure, Scope.Scope> {
  const failure = ({ message }: { readonly message: string }) => new LoadFailure({ message })
  const cache = yield* Effect.mapError(ObjectCache.open(directory, maxCacheBytes, rangeBytes), failure)
  if (isShared) {
    const { uid, mode } = yield* Effect.promise(() => lstat(directory))
    if (uid !== process.getuid?.() || (mode & 0o022) !== 0) {
      return yield* new LoadFailure({ message: `cannot use the cache ${directory}: another user can write to it` })
    }
  }
  return { cache, views: yield* Effect.mapError(CacheViews.open(cache), failure) }
})

/** The mirrors of one server, which share the caches of their objects. */
import { Effect, Result, type Scope } from "effect"
import { lstat } from "node:fs/promises"
import { resolve } from "node:path"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as CacheViews from "../storage/cache/CacheViews.ts"
import * as ObjectCache from "../storage/cache/ObjectCache.ts"
import * as CloudCredentialFile from "../storage/credential/CloudCredentialFile.ts"
import type { Environment } from "../storage/credential/Environment.ts"
import { AzureStore } from "../storage/store/AzureStore.ts"
import { GoogleStore } from "../storage/store/GoogleStore.ts"
import { HubStore } from "../storage/store/HubStore.ts"
import type { ObjectStore } from "../storage/store/ObjectStore.ts"
import { S3Store } from "../storage/store/S3Store.ts"
import type { StorageUrl } from "../storage/store/StorageUrl.ts"
import { Mirror } from "./Mirror.ts"
import { cacheDirectories, defaultMaxCacheBytes, type StorageOptions } from "./StorageOptions.ts"
import * as StoreTexts from "./StoreTexts.ts"

interface OpenCache {
  readonly cache: ObjectCache.ObjectCache
  readonly views: CacheViews.CacheViews
}

export class Mirrors {
  readonly #options: StorageOptions
  readonly #caches = new Map<string, OpenCache>()

  constructor(options: StorageOptions) {
    this.#options = options
  }

  open(url: StorageUrl, singleModel: string | undefined): Effect.Effect<Mirror, LoadFailure, Scope.Scope> {
    const options = this.#options
    const environment = options.environment ?? process.env
    return Effect.map(openCache(url.kind, options, environment, this.#caches), ({ cache, views }) => {
      const store = storeOf(url, environment)
      const texts = StoreTexts.make(url)
      return new Mirror({ url: url.shown, isRoot: url.path === "", texts, store, cache, views, singleModel })
    })
  }
}

const storeOf = (url: StorageUrl, environment: Environment): ObjectStore => {
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
  kind: StorageUrl["kind"],
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

/**
 * A repository in object storage as directories on disk. A refresh lists its objects, once for all models. Opening a
 * model downloads what a load of it needs into the cache, and makes a directory of that, which never changes:
 *
 *   refresh ─► listing ─► models, stamps
 *   open    ─► config.pbtxt ─► versions that will be loaded ─► their objects in the cache ─► directory of links
 *                 └── an object has changed since the listing: refresh, and again ──┘
 */
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"
import { Clock, Effect, Result, Scope, Semaphore } from "effect"
import { createHash } from "node:crypto"
import { readFile } from "node:fs/promises"
import { relative, sep } from "node:path"
import { LoadFailure } from "../directory/LoadFailure.ts"
import * as ModelDirectory from "../directory/ModelDirectory.ts"
import type { OpenedModel, OpenOptions, RepositoryDirectory } from "../directory/RepositoryDirectory.ts"
import { type CacheViews, evicted } from "../storage/cache/CacheViews.ts"
import { type CachedObject, idOf, type ObjectCache, type Transfer } from "../storage/cache/ObjectCache.ts"
import { StoreProblem } from "../storage/http/StoreProblem.ts"
import type { ObjectStore } from "../storage/store/ObjectStore.ts"
import * as DownloadLog from "./DownloadLog.ts"
import * as KeyRules from "./KeyRules.ts"
import * as ModelTree from "./ModelTree.ts"
import { ModelView } from "./ModelView.ts"
import * as SavedListing from "./SavedListing.ts"
import type { StoreTexts } from "./StoreTexts.ts"
import * as WantedFiles from "./WantedFiles.ts"

export interface MirrorOptions {
  /** URL of the repository, without secrets. */
  readonly url: string
  /** Triton's texts for problems of its store. */
  readonly texts: StoreTexts
  readonly store: ObjectStore
  readonly cache: ObjectCache
  readonly views: CacheViews
  readonly singleModel: string | undefined
  /** Whether the URL names the whole bucket, which exists without any object. */
  readonly isRoot: boolean
}

/** Listings of one load, because objects changed while they were read. */
const maxListings = 4

export class Mirror implements RepositoryDirectory {
  readonly path: string
  readonly #options: MirrorOptions
  readonly #turn = Semaphore.makeUnsafe(1)
  #tree: ModelTree.ModelTree | undefined
  /** Refreshes that were requested, and those of them that the last listing began after. */
  #requested = 0
  #covered = 0
  #failure: LoadFailure | undefined
  /** The problem that was logged last; undefined while the store answers. */
  #logged: string | undefined
  readonly #views = new Map<string, ModelView>()
  /** Downloads under way, by the names of their models. */
  readonly #downloads = new Map<string, DownloadLog.DownloadLog>()

  constructor(options: MirrorOptions) {
    this.path = options.url
    this.#options = options
  }

  /** Fails only if there is no listing at all, not even on disk. Otherwise, a problem is logged. */
  get refresh(): Effect.Effect<void, LoadFailure> {
    return Effect.suspend(() => {
      const mine = ++this.#requested
      // Refreshes that are requested during a listing share the next one.
      return this.#turn.withPermit(
        Effect.suspend(() => {
          if (this.#covered >= mine) return this.#failure === undefined ? Effect.void : Effect.fail(this.#failure)
          this.#covered = this.#requested
          return Effect.tap(
            Effect.tapError(this.#list, (failure) => Effect.sync(() => (this.#failure = failure))),
            () => Effect.sync(() => (this.#failure = undefined)),
          )
        }),
      )
    })
  }

  get names(): Effect.Effect<ReadonlyArray<string>, LoadFailure> {
    return Effect.sync(() => [...(this.#tree?.models.keys() ?? [])])
  }

  stamp(name: string): Effect.Effect<string> {
    return Effect.sync(() => this.#tree?.models.get(name)?.stamp ?? "")
  }

  progress(name: string): string | undefined {
    return this.#downloads.get(name)?.progress()
  }

  open(name: string, options: OpenOptions): Effect.Effect<OpenedModel, LoadFailure, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      for (let listing = 1; ; listing++) {
        const opened = yield* Effect.result(this.#open(name, options))
        if (Result.isSuccess(opened)) return opened.success
        const problem = opened.failure
        if (problem._tag === "LoadFailure") return yield* problem
        const failure = new LoadFailure({ message: this.#options.texts.get(this.#urlOf(name), problem) })
        if (!isOutdated(problem) || listing === maxListings) return yield* failure
        yield* this.refresh
      }
    })
  }

  get #list(): Effect.Effect<void, LoadFailure> {
    return Effect.gen({ self: this }, function* () {
      const { url, isRoot, texts, store, cache, singleModel } = this.#options
      const listed = yield* Effect.result(store.list)
      if (Result.isSuccess(listed)) {
        const objects = listed.success
        if (objects.length === 0 && !isRoot) return yield* this.#failed(`directory or file does not exist at ${url}`)
        const before = this.#tree
        const tree = ModelTree.make(objects, singleModel)
        this.#tree = tree
        yield* this.#logIgnored(before)
        if (this.#logged !== undefined) yield* Effect.logInfo(`The model repository ${url} answers again`)
        this.#logged = undefined
        if (before === undefined || !ModelTree.isSame(before, tree)) {
          yield* SavedListing.write(cache, url, { listedAt: yield* Clock.currentTimeMillis, objects })
        }
        return
      }
      const message = texts.list(listed.failure)
      if (this.#tree !== undefined || listed.failure.kind !== "unreachable") return yield* this.#failed(message)
      const saved = yield* SavedListing.read(cache, url)
      if (saved === undefined) return yield* this.#failed(message)
      this.#tree = ModelTree.make(saved.objects, singleModel)
      this.#logged = message
      const date = new Date(saved.listedAt).toISOString()
      yield* Effect.logWarning(`The model repository ${url} is served from the cache, as it was at ${date}: ${message}`)
    })
  }

  /** The models of an earlier listing stay as they are. */
  #failed(message: string): Effect.Effect<void, LoadFailure> {
    if (this.#tree === undefined) return Effect.fail(new LoadFailure({ message }))
    if (this.#logged === message) return Effect.void
    this.#logged = message
    return Effect.logError(`failed to poll model repository '${this.path}': ${message}`)
  }

  #logIgnored(before: ModelTree.ModelTree | undefined): Effect.Effect<void> {
    const ignored = this.#tree?.ignored ?? []
    const [first] = ignored
    if (first === undefined || before?.ignored.length === ignored.length) return Effect.void
    const count = ignored.length === 1 ? "1 object" : `${ignored.length} objects`
    const rule = KeyRules.problem(first) ?? "it cannot be a path"
    return Effect.logWarning(
      `The model repository ${this.path} has ${count} that no model can have, such as ${KeyRules.shown(first)}: ${rule}`,
    )
  }

  #urlOf(name: string): string {
    return this.#tree?.isSingle === true ? this.path : `${this.path}/${name}`
  }

  #open(name: string, options: OpenOptions): Effect.Effect<OpenedModel, LoadFailure | StoreProblem, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      const model = this.#tree?.models.get(name)
      const url = this.#urlOf(name)
      if (model === undefined) return yield* new LoadFailure({ message: `directory or file does not exist at ${url}` })
      if (model.problem !== undefined) return yield* new LoadFailure({ message: model.problem })
      const scope = yield* Effect.scope
      const { view, files } = yield* Effect.scoped(
        Effect.flatMap(this.#download(name), (transfer) => Scope.provide(this.#view(model, options, transfer), scope)),
      )
      return {
        directory: yield* this.#read(name, view, files, options.configName),
        hold: view.hold,
        shown: (message) => message.replaceAll(view.path + sep, `${url}/`).replaceAll(view.path, url),
      }
    })
  }

  /** The download of a model, known until the scope closes. */
  #download(name: string): Effect.Effect<Transfer, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.tap(DownloadLog.make(name), (download) => Effect.sync(() => this.#downloads.set(name, download))),
      () => Effect.sync(() => this.#downloads.delete(name)),
    )
  }

  /** The directory with what a load needs, held until the scope closes. */
  #view(
    model: ModelTree.ModelObjects,
    { configName, wanted }: OpenOptions,
    transfer: Transfer,
  ): Effect.Effect<
    { readonly view: ModelView; readonly files: ReadonlyArray<ViewFile> },
    LoadFailure | StoreProblem,
    Scope.Scope
  > {
    return Effect.gen({ self: this }, function* () {
      const { store, cache, views } = this.#options
      const config = WantedFiles.configOf(model, configName)
      const text = config === undefined ? undefined : yield* this.#text(model, config, transfer)
      const paths = WantedFiles.select(model, wanted(text, ModelTree.versionsOf(model)))
      const files = paths.flatMap((path) => this.#cached(model, path))
      const folders = [...model.folders]
      const key = JSON.stringify([model.name, digest([...folders, ...files.map(({ path, id }) => `${path} ${id}`)])])
      const known = this.#views.get(key)
      if (known !== undefined) {
        yield* known.hold
        return { view: known, files }
      }
      const build = Effect.andThen(cache.hold(store, files, transfer), views.make(model.name, files, folders))
      const view = yield* ModelView.make(build, () => void this.#views.delete(key))
      this.#views.set(key, view)
      return { view, files }
    })
  }

  #cached(model: ModelTree.ModelObjects, path: string): ReadonlyArray<ViewFile> {
    const object = model.files.get(path)
    return object === undefined ? [] : [{ path, object, id: idOf(this.path, object) }]
  }

  /** The configuration, which says what else is needed. */
  #text(
    model: ModelTree.ModelObjects,
    path: string,
    transfer: Transfer,
  ): Effect.Effect<string, LoadFailure | StoreProblem> {
    const { store, cache } = this.#options
    const files = this.#cached(model, path)
    return Effect.gen({ self: this }, function* () {
      for (const { object } of files) {
        if (object.size <= ModelDirectory.maxConfigBytes) continue
        const rule = `it has ${object.size} bytes, expected at most ${ModelDirectory.maxConfigBytes}`
        return yield* new LoadFailure({ message: `cannot read ${this.#urlOf(model.name)}/${path}: ${rule}` })
      }
      yield* cache.hold(store, files, transfer)
      const [file] = files
      return yield* Effect.tryPromise({
        try: () => readFile(cache.pathOf(file?.id ?? ""), "utf8"),
        catch: (error) => new StoreProblem({ kind: "failed", code: evicted, message: errorMessage(error) }),
      })
    }).pipe(Effect.scoped)
  }

  /** The directory, with stamps of what the objects are instead of those of the files. */
  #read(
    name: string,
    view: ModelView,
    files: ReadonlyArray<ViewFile>,
    configName: string | undefined,
  ): Effect.Effect<ModelDirectory.ModelDirectory, LoadFailure> {
    const read = this.#tree?.isSingle === true ? ModelDirectory.readSingle : ModelDirectory.read
    return Effect.map(read(name, view.path, configName), (directory) => {
      const stampOf = (version: number) => {
        const folder = relative(view.path, directory.folderOf(version))
        const own = folder === "" ? files : files.filter(({ path }) => path.startsWith(`${folder}/`))
        return Effect.succeed(digest(own.map(({ path, id }) => `${path} ${id}`)))
      }
      const isOfModel = ({ path }: ViewFile) =>
        path !== ModelDirectory.configFile && !path.startsWith("configs/") && ModelTree.versionOf(path) === undefined
      const isBare =
        directory.stamp === "" &&
        [...directory.versions.keys()].every((version) => directory.folderOf(version) === view.path)
      const stamp = isBare ? "" : digest(files.filter(isOfModel).map(({ path, id }) => `${path} ${id}`))
      return { ...directory, stampOf, stamp }
    })
  }
}

interface ViewFile extends CachedObject {
  /** Below the directory of the model. */
  readonly path: string
}

/** Whether another listing may help: the object is not the one of the listing any more, or not in the cache. */
const isOutdated = ({ kind, code }: StoreProblem): boolean =>
  kind === "changed" || kind === "missing" || code === evicted

const digest = (lines: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(lines.toSorted())).digest("hex")

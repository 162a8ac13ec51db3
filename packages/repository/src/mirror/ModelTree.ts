/** The models of a listing: objects by the directory of their model, with what is wrong with them. Pure. */
import { createHash } from "node:crypto"
import { configFile, known } from "../directory/ModelDirectory.ts"
import type { StoredObject } from "../storage/store/ObjectStore.ts"
import * as KeyRules from "./KeyRules.ts"

export interface ModelObjects {
  readonly name: string
  /** By their paths below the directory of the model. */
  readonly files: ReadonlyMap<string, StoredObject>
  /** All directories below that of the model. */
  readonly folders: ReadonlySet<string>
  /** Why the model cannot be a directory on disk; undefined if it can. */
  readonly problem: string | undefined
  /** Changes with any of its objects. */
  readonly stamp: string
}

export interface ModelTree {
  /** Whether the repository is itself the directory of a model. */
  readonly isSingle: boolean
  readonly models: ReadonlyMap<string, ModelObjects>
  /** Keys that belong to no model and cannot. */
  readonly ignored: ReadonlyArray<string>
}

/** `singleModel`: name of the model, if the listing may be that of a model itself. */
export const make = (objects: ReadonlyArray<StoredObject>, singleModel: string | undefined): ModelTree => {
  const groups = new Map<string, Array<readonly [path: string, object: StoredObject]>>()
  const ignored: Array<string> = []
  const isSingle = singleModel !== undefined && isModel(objects)
  for (const object of objects) {
    const { key } = object
    // The placeholder of the repository's own directory.
    if (key === "" || key === "/") continue
    const slash = key.indexOf("/")
    const top = slash < 0 ? key : key.slice(0, slash)
    if (KeyRules.problem(top) !== undefined) ignored.push(key)
    if (KeyRules.problem(top) !== undefined || (slash < 0 && !isSingle)) continue
    if (!isSingle && (top.startsWith(".") || top === "node_modules")) continue
    const [name, path] = isSingle ? [singleModel, key] : [top, key.slice(slash + 1)]
    const group = groups.get(name) ?? []
    groups.set(name, group)
    group.push([path, object])
  }
  return { isSingle, models: new Map([...groups].map(([name, group]) => [name, modelOf(name, group)])), ignored }
}

export const isSame = (one: ModelTree, other: ModelTree): boolean =>
  one.models.size === other.models.size &&
  [...one.models].every(([name, { stamp }]) => other.models.get(name)?.stamp === stamp)

/** The version that a path belongs to; undefined for a file of the model itself. */
export const versionOf = (path: string): number | undefined => {
  const [, digits] = /^([1-9][0-9]*)\//.exec(path) ?? []
  const version = Number(digits)
  return digits !== undefined && Number.isSafeInteger(version) ? version : undefined
}

/** The versions of a model, also those without a file. */
export const versionsOf = ({ folders }: ModelObjects): ReadonlyArray<number> =>
  [...folders].flatMap((folder) => (folder.includes("/") ? [] : (versionOf(`${folder}/`) ?? [])))

/** Whether a listing is that of a model itself, by the rules of ModelDirectory.isSingle. */
const isModel = (objects: ReadonlyArray<StoredObject>): boolean => {
  const keys = objects.map(({ key }) => key).filter((key) => key !== "" && !key.startsWith("."))
  if (keys.some((key) => !key.includes("/") && (key === configFile || key.endsWith(".onnx")))) return true
  const folders = new Set(keys.flatMap((key) => (key.includes("/") ? [key.slice(0, key.indexOf("/"))] : [])))
  const versions = [...folders].filter((folder) => !known.has(folder))
  return versions.length > 0 && versions.every((folder) => /^[1-9][0-9]*$/.test(folder))
}

const modelOf = (name: string, group: ReadonlyArray<readonly [path: string, object: StoredObject]>): ModelObjects => {
  const files = new Map<string, StoredObject>()
  const folders = new Set<string>()
  let problem: string | undefined
  for (const [path, object] of group) {
    // Python writes compiled code beside its files.
    if (path === "" || path.split("/").includes("__pycache__")) continue
    const wrong = KeyRules.problem(path) ?? (files.has(path) ? "the listing has it twice" : undefined)
    problem ??= wrong === undefined ? undefined : `object ${KeyRules.shown(object.key)} cannot be a file: ${wrong}`
    if (wrong !== undefined) continue
    if (!path.endsWith("/")) files.set(path, object)
    const names = path.split("/").slice(0, -1)
    for (let depth = 1; depth <= names.length; depth++) folders.add(names.slice(0, depth).join("/"))
  }
  problem ??= clash(files, folders)
  const hash = createHash("sha256")
  for (const [path, { size, version }] of [...files].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    hash.update(JSON.stringify([path, size, version]))
  }
  for (const folder of [...folders].toSorted()) hash.update(JSON.stringify(folder))
  return { name, files, folders, problem, stamp: problem ?? hash.digest("hex") }
}

/** Paths that would be the same on a file system that ignores case, and files that are also directories. */
const clash = (files: ReadonlyMap<string, StoredObject>, folders: ReadonlySet<string>): string | undefined => {
  const seen = new Map<string, string>()
  for (const path of [...folders, ...files.keys()]) {
    const folded = path.normalize("NFC").toLowerCase()
    const other = seen.get(folded)
    if (other !== undefined) {
      return other === path
        ? `object ${KeyRules.shown(path)} is both a file and a directory`
        : `objects ${KeyRules.shown(other)} and ${KeyRules.shown(path)} differ only in case`
    }
    seen.set(folded, path)
  }
  return undefined
}

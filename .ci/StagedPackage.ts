/**
 * Writes the package.json and README of a published package, from those of its workspace. In the repository, `exports`
 * point at sources. A staged package.json points them at the emitted files, because npm ignores
 * `publishConfig.exports`.
 *
 * The address of the repository is `repository` of the root package.json, and of no other file. While it is absent,
 * staged packages have no `repository`, `homepage` or `bugs`.
 */
import { posix } from "node:path"

export interface PackageJson {
  readonly name: string
  readonly version: string
  readonly exports?: Readonly<Record<string, string>>
  readonly bin?: Readonly<Record<string, string>>
  /** Folders that are published. The build makes `dist`, and copies the others. */
  readonly files: ReadonlyArray<string>
  /** The files that act when they are imported; false where no file does. */
  readonly sideEffects: false | ReadonlyArray<string>
  readonly dependencies?: Readonly<Record<string, string>>
}

/** @throws Error for anything but an https address without `.git` */
export const repositoryAddress = (root: { readonly repository?: unknown }): string | undefined => {
  const { repository } = root
  if (repository === undefined) return undefined
  if (typeof repository === "string" && /^https:\/\/[^/]+\/.+(?<!\.git|\/)$/.test(repository)) return repository
  throw new Error(
    `"repository" of the root package.json is ${JSON.stringify(repository)}, expected an address like "https://host/owner/name"`,
  )
}

/** @param folder its name below `packages` */
export const packageJson = (manifest: PackageJson, folder: string, repository: string | undefined): object => {
  const { exports, bin, sideEffects } = manifest
  const mapValues = <A, B>(record: Readonly<Record<string, A>>, f: (value: A) => B) =>
    Object.fromEntries(Object.entries(record).map(([key, value]) => [key, f(value)]))
  return {
    ...manifest,
    ...(repository === undefined ? {} : links(folder, repository)),
    ...(exports === undefined ? {} : { exports: emittedExports(exports) }),
    ...(bin === undefined ? {} : { bin: mapValues(bin, (file) => emitted(file, ".js")) }),
    ...(sideEffects === false ? {} : { sideEffects: sideEffects.map((file) => emitted(file, ".js")) }),
  }
}

/**
 * The exports of the emitted files. Modules for sibling packages are one pattern: Node parses the exports of a package
 * for each import of it, and of most packages' names that was a third of the time of a start. TypeScript finds their
 * declarations beside them.
 */
const emittedExports = (exports: Readonly<Record<string, string>>): object => {
  const emittedEntries = Object.entries(exports).map(([path, file]) => {
    const [, internal] = /^\.\/internal\/(.*)$/.exec(path) ?? []
    if (internal !== undefined && file === `./src/${internal}.ts`) return ["./internal/*", "./dist/*.js"]
    return [path, { types: emitted(file, ".d.ts"), default: emitted(file, ".js") }]
  })
  return Object.fromEntries(emittedEntries)
}

/**
 * Returns the README with absolute links, because the package lacks the repository's other files. Without an address,
 * links become plain text.
 */
export const readme = (text: string, folder: string, repository: string | undefined): string =>
  text.replaceAll(/\[([^\]]+)\]\((?![a-z]+:|#)([^)\s]+)\)/g, (_, title: string, link: string) =>
    repository === undefined
      ? title
      : `[${title}](${repository}/blob/HEAD/${posix.normalize(`packages/${folder}/${link}`)})`,
  )

/** The path of the file that `tsc` emits for a source. */
export const emitted = (source: string, extension: string): string =>
  source.replace("./src/", "./dist/").replace(/\.ts$/, extension)

/** The path of a file that is published as it is. A second package.json would be read as one of the package. */
export const copied = (path: string): string => path.replace(/(^|[/\\])package\.json$/, "$1_package.json")

const links = (folder: string, repository: string) => ({
  homepage: `${repository}/tree/HEAD/packages/${folder}#readme`,
  repository: { type: "git", url: `git+${repository}.git`, directory: `packages/${folder}` },
  bugs: { url: `${repository}/issues` },
})

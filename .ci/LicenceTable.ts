/**
 * Licences of the packages that an install of the published packages can bring, by package-lock.json: dependencies,
 * peers, and optional packages of all platforms. Optional peers count only where a published package declares them,
 * because npm installs no others. The guide on licences has them as a table.
 */

interface Entry {
  readonly version?: string
  readonly license?: string
  /** Present for packages of one platform. */
  readonly cpu?: ReadonlyArray<string>
  /** A link to a package of this repository. */
  readonly link?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

/** Entries of a lock file, by path. */
export type Locked = Readonly<Record<string, Entry>>

export interface Row {
  /** Packages of several platforms share a row, such as `@img/sharp-linux-*`. */
  readonly name: string
  readonly version: string
  /** SPDX expression; empty if the package declares none. */
  readonly licence: string
  /** Folders of the published packages that bring it, by themselves or by their dependencies. */
  readonly broughtBy: ReadonlySet<string>
}

/** @param published folders of the published packages, below `packages` */
export const rows = (locked: Locked, published: ReadonlyArray<string>): ReadonlyArray<Row> => {
  const found = new Map<string, Row>()
  for (const folder of published) {
    for (const path of reachable(locked, `packages/${folder}`)) {
      const { version = "", license: licence = "", cpu } = locked[path] ?? {}
      const fullName = path.replace(/^.*node_modules\//, "")
      const name = cpu === undefined ? fullName : fullName.replace(/-[^-]+$/, "-*")
      const key = `${name} ${version} ${licence}`
      const broughtBy = new Set(found.get(key)?.broughtBy).add(folder)
      found.set(key, { name, version, licence, broughtBy })
    }
  }
  return [...found].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row)
}

/** Paths of what a published package brings, without other packages of this repository. */
const reachable = (locked: Locked, root: string): ReadonlySet<string> => {
  const paths = new Set<string>()
  const add = (path: string): void => {
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = locked[path] ?? {}
    const isBrought = (peer: string) => path === root || peerDependenciesMeta?.[peer]?.optional !== true
    const peers = Object.keys(peerDependencies ?? {}).filter(isBrought)
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
      const resolved = resolve(locked, path, name)
      if (resolved === undefined) throw new Error(`package-lock.json has no ${name}, which ${path} requires.`)
      if (locked[resolved]?.link === true || paths.has(resolved)) continue
      paths.add(resolved)
      add(resolved)
    }
  }
  add(root)
  return paths
}

/** The path that Node finds for a name, imported by the package at another path. */
const resolve = (locked: Locked, from: string, name: string): string | undefined => {
  const path = `${from}/node_modules/${name}`
  if (path in locked) return path
  const parent = from.lastIndexOf("/node_modules/")
  if (parent >= 0) return resolve(locked, from.slice(0, parent), name)
  return `node_modules/${name}` in locked ? `node_modules/${name}` : undefined
}

const allowed = new Set(["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"])

/** Licences that only these packages may have. The guide explains each. */
const exceptions: Readonly<Record<string, RegExp>> = { "LGPL-3.0-or-later": /^@img\/sharp-/ }

/** Returns a message for each package whose licence is not allowed. */
export const problems = (found: ReadonlyArray<Row>): ReadonlyArray<string> =>
  found.flatMap(({ name, version, licence, broughtBy }) => {
    const isAllowed = (term: string) => allowed.has(term) || exceptions[term]?.test(name) === true
    const terms = licence.replace(/^\((.*)\)$/, "$1").split(" AND ")
    if (terms.every((term) => term.split(" OR ").some(isAllowed))) return []
    return [`${name} ${version}, which ${[...broughtBy].join(", ")} brings, has the licence "${licence}"`]
  })

const head = ["| package | version | licence | installed with |", "|---|---|---|---|"]

const pattern = new RegExp(`${head.map((line) => RegExp.escape(line)).join("\n")}(?:\n\\|.*)*`)

/** The text with this table in place of its own. @throws Error if it has none */
export const replace = (text: string, found: ReadonlyArray<Row>): string => {
  if (!pattern.test(text)) throw new Error(`There is no table that begins with ${head[0]}`)
  const lines = found.map(
    ({ name, version, licence, broughtBy }) =>
      `| \`${name}\` | ${version} | ${licence} | ${[...broughtBy].map((folder) => `\`${folder}\``).join(", ")} |`,
  )
  return text.replace(pattern, () => [...head, ...lines].join("\n"))
}

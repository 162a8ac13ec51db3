/**
 * Completes package-lock.json after `npm install`: node .ci/complete-lock.ts [folder]. The default folder is the root;
 * docs/site has the other lock file.
 *
 * Tools with native parts list one optional package per platform. A registry that lacks those of other platforms (a
 * mirror, or one that has not caught up with a release) makes npm leave them out of the lock file, and `npm ci` of npm
 * 11 then refuses it, everywhere. What a package is for stands in its name, and its version in its parent.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

interface Entry {
  readonly version?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: ReadonlyArray<string>
  readonly cpu?: ReadonlyArray<string>
  readonly libc?: ReadonlyArray<string>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const file = join(import.meta.dirname, "..", process.argv[2] ?? ".", "package-lock.json")
const lock: { packages: Record<string, Entry> } = JSON.parse(readFileSync(file, "utf8"))

const systems = ["darwin", "linux", "win32", "android", "freebsd", "openbsd", "openharmony", "sunos", "aix"]
const processors: ReadonlyArray<readonly [string, string]> = [
  ["arm64", "arm64"],
  ["loong64", "loong64"],
  ["x64", "x64"],
  ["ia32", "ia32"],
  ["ppc64", "ppc64"],
  ["riscv64", "riscv64"],
  ["s390x", "s390x"],
  ["arm", "arm"],
]

const platform = (name: string): Pick<Entry, "os" | "cpu" | "libc"> | undefined => {
  const os = systems.find((system) => name.includes(`-${system}`))
  const cpu = processors.find(([part]) => name.includes(`-${part}`))?.[1]
  if (os === undefined || cpu === undefined) return undefined
  const libc = os !== "linux" ? undefined : name.includes("musl") ? "musl" : name.includes("gnu") ? "glibc" : undefined
  return { cpu: [cpu], ...(libc === undefined ? {} : { libc: [libc] }), os: [os] }
}

const added: Array<string> = []
for (const { dev, optionalDependencies = {} } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies)) {
    const path = `node_modules/${name}`
    const where = platform(name)
    if (lock.packages[path] !== undefined || where === undefined || !/^\d/.test(version)) continue
    const { os, cpu, libc } = where
    lock.packages[path] = {
      version,
      ...(cpu === undefined ? {} : { cpu }),
      ...(dev === true ? { dev } : {}),
      ...(libc === undefined ? {} : { libc }),
      optional: true,
      ...(os === undefined ? {} : { os }),
    }
    added.push(`${name}@${version}`)
  }
}

// Sorts as npm does, so that its next run changes nothing else.
const sorted = Object.entries(lock.packages).toSorted(([one], [other]) => one.localeCompare(other, "en"))
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`)
console.log(added.length === 0 ? "The lock file is complete." : `Added ${added.join(", ")}`)

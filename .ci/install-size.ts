/**
 * Installs the tarballs of `npm run build` into empty projects, and measures them: node .ci/install-size.ts [--write].
 *
 * Without a flag, fails if an install is larger than its ceiling, or if a size differs by more than the tolerance from
 * the table in the README. --write replaces the table. Times are reported and never fail. The projects get the versions
 * of package-lock.json, so that a release of a dependency changes no result.
 */
import { execFileSync } from "node:child_process"
import { globSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InstallTable from "./InstallTable.ts"

const root = join(import.meta.dirname, "..")
const readme = join(root, "README.md")

interface Project {
  readonly title: string
  /** Folders of this repository's packages; a dependency of one must be in the list as well. */
  readonly packages: ReadonlyArray<string>
  /** Packages of the registry. */
  readonly others: ReadonlyArray<string>
  /** Maximum size, in megabytes. */
  readonly ceiling: number
}

const server = ["protocol", "core", "http2", "dashboard", "server"]
const commandLine = [...server, "onnx", "worker", "python", "repository", "client", "bench", "cli"]

const projects: ReadonlyArray<Project> = [
  { title: "Client", packages: ["protocol", "core", "http2", "client"], others: ["effect"], ceiling: 70 },
  { title: "Server", packages: server, others: ["effect", "@effect/platform-node-shared"], ceiling: 72 },
  { title: "Command line, without ONNX Runtime", packages: commandLine, others: ["effect"], ceiling: 75 },
  {
    title: "All packages, with ONNX Runtime",
    packages: [...commandLine, "image", "cluster"],
    others: ["effect", "@effect/platform-node-shared", "onnxruntime-node"],
    ceiling: 410,
  },
]

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly version?: string; readonly link?: boolean }>>
}

/** The versions of the lock file, by name, of packages at its top level. */
const lockedVersions = (): ReadonlyMap<string, string> => {
  const { packages }: LockFile = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"))
  return new Map(
    Object.entries(packages).flatMap(([path, { version, link }]) => {
      const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? []
      return name === undefined || version === undefined || link === true ? [] : [[name, version] as const]
    }),
  )
}

/** Bytes of all files below a folder. Links count as nothing. */
const bytesOf = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((bytes, entry) => bytes + lstatSync(join(entry.parentPath, entry.name)).size, 0)

const tarball = (name: string): string => {
  const [file] = globSync(join(root, "dist", `${name}-[0-9]*.tgz`))
  if (file === undefined) throw new Error(`dist has no tarball of ${name}: run "npm run build" first.`)
  return `file:${file}`
}

const versions = lockedVersions()

const versionOf = (name: string): string => {
  const version = versions.get(name)
  if (version === undefined) throw new Error(`package-lock.json has no ${name}.`)
  return version
}

const measure = ({ title, packages, others }: Project): InstallTable.Row => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-install-"))
  try {
    const dependencies = Object.fromEntries([
      ...packages.map((name) => [`@nereid/${name}`, tarball(`nereid-${name}`)]),
      // A dependency of the command line.
      ...(packages.includes("cli") ? [["create-nereid", tarball("create-nereid")]] : []),
      ...others.map((name) => [name, versionOf(name)]),
    ])
    writeFileSync(
      join(folder, "package.json"),
      JSON.stringify({ private: true, dependencies, overrides: Object.fromEntries(versions) }),
    )
    const startedAt = performance.now()
    execFileSync("npm", ["install", "--silent", "--no-audit", "--no-fund"], {
      cwd: folder,
      env: { ...process.env, ONNXRUNTIME_NODE_INSTALL: "skip" },
      stdio: "inherit",
    })
    const seconds = (performance.now() - startedAt) / 1000
    const count = execFileSync("npm", ["ls", "--all", "--parseable"], { cwd: folder, encoding: "utf8" })
    return {
      title,
      packages: count.trim().split("\n").length - 1,
      megabytes: Math.round(bytesOf(join(folder, "node_modules")) / 1e6),
      seconds: Math.round(seconds),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const rows = projects.map(measure)
console.log(InstallTable.print(rows))

const tooLarge = rows.filter(({ megabytes }, index) => megabytes > (projects[index]?.ceiling ?? 0))
for (const { title, megabytes } of tooLarge) {
  const ceiling = projects.find((project) => project.title === title)?.ceiling
  console.error(`${title}: ${megabytes} MB, at most ${ceiling} MB are allowed`)
}
const text = readFileSync(readme, "utf8")
if (process.argv.includes("--write")) writeFileSync(readme, InstallTable.replace(text, rows))
const stale = process.argv.includes("--write") ? [] : InstallTable.differences(text, rows)
for (const difference of stale) console.error(`README.md: ${difference}; "node .ci/install-size.ts --write" updates it`)
if (tooLarge.length + stale.length > 0) process.exitCode = 1

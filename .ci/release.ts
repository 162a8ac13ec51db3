/**
 * Publishes the packages that `npm run build` has staged in dist, dependencies first: node .ci/release.ts [--dry-run].
 * Versions that npm has already are skipped, so that an interrupted release can be repeated. A dry run publishes
 * nothing, sends no request to a registry, and needs no address of the repository.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as StagedPackage from "./StagedPackage.ts"

const root = join(import.meta.dirname, "..")
const dist = join(root, "dist")
const isDryRun = process.argv.includes("--dry-run")

const read = (...path: ReadonlyArray<string>) => JSON.parse(readFileSync(join(root, ...path), "utf8"))

if (!isDryRun && StagedPackage.repositoryAddress(read("package.json")) === undefined) {
  throw new Error(`The root package.json has no "repository", which npm compares with the origin of the packages.`)
}

const folders = readdirSync(join(root, "packages"))
const unbuilt = folders.filter((folder) => !existsSync(join(dist, folder, "package.json")))
if (unbuilt.length > 0) throw new Error(`dist has no ${unbuilt.join(", ")}: run "npm run build" first.`)

const staged = new Map<string, StagedPackage.PackageJson & { readonly folder: string }>()
for (const folder of folders) {
  const manifest: StagedPackage.PackageJson = read("dist", folder, "package.json")
  const { version } = read("packages", folder, "package.json")
  if (manifest.version !== version) {
    throw new Error(`dist has ${manifest.name} ${manifest.version}, packages ${version}: run "npm run build" again.`)
  }
  staged.set(manifest.name, { ...manifest, folder })
}

const ordered = new Set<string>()
const add = (name: string): void => {
  const manifest = staged.get(name)
  if (manifest === undefined || ordered.has(name)) return
  for (const dependency of Object.keys(manifest.dependencies ?? {})) add(dependency)
  ordered.add(name)
}
for (const name of staged.keys()) add(name)

interface Packed {
  readonly size: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}

/** Fails for an archive that lacks what every package has, or has what no package should. */
const check = (name: string, { size, files }: Packed) => {
  const paths = files.map(({ path }) => path)
  const missing = ["LICENSE", "README.md", "package.json"].filter((path) => !paths.includes(path))
  const built = paths.filter((path) => !path.startsWith("template/"))
  const excess = built.filter((path) => /\.(test|fixture)\.|(?<!\.d)\.ts$/.test(path))
  if (missing.length + excess.length > 0) {
    throw new Error(`${name}: missing are [${missing.join(", ")}], not allowed are [${excess.join(", ")}]`)
  }
  console.log(`${name} ${staged.get(name)?.version}: ${paths.length} files, ${Math.ceil(size / 1024)} KiB`)
}

for (const name of ordered) {
  const { folder = "", version = "" } = staged.get(name) ?? {}
  const cwd = join(dist, folder)
  const packed = execFileSync("npm", ["pack", "--dry-run", "--json"], { cwd, encoding: "utf8" })
  const parsed: ReadonlyArray<Packed> | Readonly<Record<string, Packed>> = JSON.parse(packed)
  for (const one of Object.values(parsed)) check(name, one)
  if (isDryRun) continue
  const isPublished =
    spawnSync("npm", ["view", `${name}@${version}`, "version"], { encoding: "utf8" }).stdout.trim() === version
  if (isPublished) console.log(`${name} ${version} is on npm`)
  else execFileSync("npm", ["publish"], { cwd, stdio: "inherit" })
}

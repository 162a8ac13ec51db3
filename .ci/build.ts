/**
 * Builds the publishable packages: each workspace as JavaScript and declarations in dist/<package>, and its tarball.
 * StagedPackage.ts writes their package.json and README, EffectImports.ts changes their imports of Effect. The image of
 * deploy/Containerfile is built from the same folder.
 */
import { execFileSync } from "node:child_process"
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { basename, join } from "node:path"
import * as CommandBundle from "./CommandBundle.ts"
import * as EffectImports from "./EffectImports.ts"
import * as StagedPackage from "./StagedPackage.ts"

const root = join(import.meta.dirname, "..")
const out = join(root, "dist")
const packages = readdirSync(join(root, "packages"))

const run = (command: string, args: ReadonlyArray<string>, cwd = root) =>
  execFileSync(command, args, { cwd, stdio: "inherit" })

const read = (...path: ReadonlyArray<string>) => readFileSync(join(root, ...path), "utf8")

const repository = StagedPackage.repositoryAddress(JSON.parse(read("package.json")))

/** Folders that are not published: packages that npm installed, tests of Python modules, and what Python compiled. */
const unpublished: ReadonlySet<string> = new Set(["node_modules", "tests", "__pycache__"])

/** Stages a folder that is published as it is, such as a template. */
const copy = (name: string, folder: string) => {
  const to = join(out, name, folder)
  const filter = (source: string) => !unpublished.has(basename(source))
  cpSync(join(root, "packages", name, folder), to, { recursive: true, filter })
  const files = readdirSync(to, { recursive: true, encoding: "utf8" })
  for (const file of files) renameSync(join(to, file), join(to, StagedPackage.copied(file)))
}

const stage = (name: string) => {
  const staged = join(out, name)
  const manifest: StagedPackage.PackageJson = JSON.parse(read("packages", name, "package.json"))
  const write = (file: string, text: string) => writeFileSync(join(staged, file), text)
  cpSync(join(out, "emitted", name, "src"), join(staged, "dist"), { recursive: true })
  for (const file of globSync(join(staged, "dist/**/*.js"))) {
    writeFileSync(file, EffectImports.rewrite(readFileSync(file, "utf8"), file))
  }
  for (const folder of manifest.files) if (folder !== "dist") copy(name, folder)
  cpSync(join(root, "LICENSE"), join(staged, "LICENSE"))
  write("README.md", StagedPackage.readme(read("packages", name, "README.md"), name, repository))
  write("package.json", JSON.stringify(StagedPackage.packageJson(manifest, name, repository), null, 2))
  for (const file of Object.values(manifest.bin ?? {})) {
    chmodSync(join(staged, StagedPackage.emitted(file, ".js")), 0o755)
  }
}

rmSync(out, { recursive: true, force: true })
mkdirSync(out)
writeFileSync(
  join(out, "tsconfig.json"),
  JSON.stringify({
    extends: "../tsconfig.json",
    compilerOptions: {
      noEmit: false,
      declaration: true,
      rootDir: "../packages",
      outDir: "emitted",
      typeRoots: ["../node_modules/@types"],
    },
    include: ["../packages/*/src"],
    exclude: ["../packages/**/*.test.ts", "../packages/**/*.fixture.ts"],
  }),
)
run("tsc", ["-p", join(out, "tsconfig.json")])
for (const name of packages) stage(name)
await CommandBundle.make(out)
for (const name of packages) {
  run("npm", ["pack", "--silent", "--pack-destination", out, join(out, name)])
}
rmSync(join(out, "emitted"), { recursive: true })
// The context of the image is dist.
cpSync(join(root, "deploy/sbom.ts"), join(out, "sbom.ts"))

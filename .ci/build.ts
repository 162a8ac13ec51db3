/**
 * Builds the publishable packages: each workspace as JavaScript and declarations in dist/<package>, and its tarball.
 * StagedPackage.ts writes their package.json and README.
 */
import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as StagedPackage from "./StagedPackage.ts"

const root = join(import.meta.dirname, "..")
const out = join(root, "dist")
const packages = readdirSync(join(root, "packages"))

const run = (command: string, args: ReadonlyArray<string>, cwd = root) =>
  execFileSync(command, args, { cwd, stdio: "inherit" })

const read = (...path: ReadonlyArray<string>) => readFileSync(join(root, ...path), "utf8")

const repository = StagedPackage.repositoryAddress(JSON.parse(read("package.json")))

const stage = (name: string) => {
  const staged = join(out, name)
  const manifest: StagedPackage.PackageJson = JSON.parse(read("packages", name, "package.json"))
  const write = (file: string, text: string) => writeFileSync(join(staged, file), text)
  cpSync(join(out, "emitted", name, "src"), join(staged, "dist"), { recursive: true })
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
for (const name of packages) {
  stage(name)
  run("npm", ["pack", "--silent", "--pack-destination", out, join(out, name)])
}
rmSync(join(out, "emitted"), { recursive: true })

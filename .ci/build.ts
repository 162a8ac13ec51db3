/**
 * Publishable packages: every workspace as JavaScript and declarations, in dist/<package>, and its tarball beside it.
 * `exports` point at sources in the repository, so a staged package.json points them at what was emitted; npm ignores
 * `publishConfig.exports`, so this has to be done by hand.
 */
import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const out = join(root, "dist")
const packages = readdirSync(join(root, "packages"))

const run = (command: string, args: ReadonlyArray<string>, cwd = root) =>
  execFileSync(command, args, { cwd, stdio: "inherit" })

const emitted = (source: string, extension: string) => source.replace("./src/", "./dist/").replace(/\.ts$/, extension)

interface PackageJson {
  readonly name: string
  readonly version: string
  readonly exports?: Readonly<Record<string, string>>
  readonly bin?: Readonly<Record<string, string>>
  /** The files that act when they are imported; false where no file does. */
  readonly sideEffects: false | ReadonlyArray<string>
}

const stage = (name: string) => {
  const staged = join(out, name)
  const source = join(root, "packages", name)
  const manifest: PackageJson = JSON.parse(readFileSync(join(source, "package.json"), "utf8"))
  cpSync(join(out, "emitted", name, "src"), join(staged, "dist"), { recursive: true })
  cpSync(join(root, "LICENSE"), join(staged, "LICENSE"))
  if (existsSync(join(source, "README.md"))) cpSync(join(source, "README.md"), join(staged, "README.md"))
  const exports = Object.entries(manifest.exports ?? {}).map(([path, file]) => [
    path,
    { types: emitted(file, ".d.ts"), default: emitted(file, ".js") },
  ])
  const { sideEffects } = manifest
  const bin = Object.entries(manifest.bin ?? {}).map(([command, file]) => [command, emitted(file, ".js")])
  for (const [, file] of bin) chmodSync(join(staged, String(file)), 0o755)
  writeFileSync(
    join(staged, "package.json"),
    JSON.stringify(
      {
        ...manifest,
        ...(exports.length > 0 ? { exports: Object.fromEntries(exports) } : {}),
        ...(bin.length > 0 ? { bin: Object.fromEntries(bin) } : {}),
        ...(sideEffects ? { sideEffects: sideEffects.map((file) => emitted(file, ".js")) } : {}),
      },
      null,
      2,
    ),
  )
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

/**
 * Compiles a real API server of Kubernetes with its etcd, and collects the definitions of custom resources, all from
 * modules of Go. Compiling takes about 15 minutes of one core the first time; Go keeps what it has compiled.
 */
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"

/** Output of a program, or undefined with a line that says why there is none. */
export type Attempt = (what: string, program: string, args: ReadonlyArray<string>, more?: Options) => string | undefined

interface Options {
  readonly cwd?: string
  readonly minutes?: number
}

const version = "1.37.2"

const kubernetes = `k8s.io/kubernetes@v${version}`

const etcd = "go.etcd.io/etcd/server/v3 v3.7.0"

/** Longest time of the compiler, in minutes. */
const compileMinutes = 20

/** Modules with definitions, and the files in them. */
const definitions = [
  ["sigs.k8s.io/gateway-api@v1.6.1", "config/crd/standard/*_{grpc,http}routes.yaml"],
  ["github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml"],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd/*_{servicemonitors,prometheusrules}.yaml",
  ],
] as const

/** The folder of a module of Go. */
const download = (attempt: Attempt, module: string): string | undefined => {
  const output = attempt(module, "go", ["mod", "download", "-json", module], { minutes: 3 })
  return output === undefined ? undefined : JSON.parse(output).Dir
}

/** Writes the files of the definitions into a folder. */
export const collectDefinitions = (folder: string, attempt: Attempt): void => {
  if (existsSync(folder)) return
  const files = definitions.map(([module, pattern]) => {
    const found = download(attempt, module)
    return found === undefined ? [] : globSync(pattern, { cwd: found }).map((file) => join(found, file))
  })
  if (files.some((found) => found.length === 0)) return
  mkdirSync(folder, { recursive: true })
  for (const file of files.flat()) copyFileSync(file, join(folder, basename(file)))
}

/** Compiles `program` in `folder`, from the sources in `source`. */
export const compile = (program: string, folder: string, source: string, attempt: Attempt): void => {
  if (existsSync(program)) return
  const what = "the API server of Kubernetes"
  const module = download(attempt, kubernetes)
  if (module === undefined) return
  mkdirSync(folder, { recursive: true })
  copyFileSync(join(source, "main.go"), join(folder, "main.go"))
  // The module takes its parts from its own folder, which a replacement in another module cannot name.
  const parts = readFileSync(join(module, "go.mod"), "utf8").matchAll(/^\s*(k8s\.io\/[\w-]+) => \.\/staging\//gm)
  const replaced = [...parts].map(([, part]) => `\t${part} => ${part} v0.${version.replace("1.", "")}\n`)
  const required = `require (\n\t${kubernetes.replace("@", " ")}\n\t${etcd}\n)\n`
  writeFileSync(
    join(folder, "go.mod"),
    `module apiserver\n\ngo 1.26.0\n\n${required}\nreplace (\n${replaced.join("")})\n`,
  )
  if (attempt(what, "go", ["mod", "tidy"], { cwd: folder, minutes: 5 }) === undefined) return
  const [major = "", minor = ""] = version.split(".")
  const numbers = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor }
  const flags = Object.entries(numbers).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
  const args = ["build", "-p", "2", "-trimpath", `-ldflags=-s -w ${flags.join(" ")}`, "-o", program, "."]
  console.log(`Compiling ${what} ${version}`)
  const startedAt = performance.now()
  if (attempt(what, "go", args, { cwd: folder, minutes: compileMinutes }) === undefined) return
  console.log(`Compiled in ${Math.round((performance.now() - startedAt) / 1000)} s`)
}

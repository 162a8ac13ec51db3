/** Modules of Go: their folders, and programs that are made of them. Go keeps what it has downloaded and compiled. */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Output of a program, or undefined with a line that says why there is none. */
export type Attempt = (what: string, program: string, args: ReadonlyArray<string>, more?: Options) => string | undefined

interface Options {
  readonly cwd?: string
  readonly minutes?: number
}

/** The folder of a module, such as `sigs.k8s.io/gateway-api@v1.6.1`. */
export const download = (attempt: Attempt, module: string): string | undefined => {
  const output = attempt(module, "go", ["mod", "download", "-json", module], { minutes: 3 })
  return output === undefined ? undefined : JSON.parse(output).Dir
}

export interface GoProgram {
  /** In a sentence, such as `the API server of Kubernetes`. */
  readonly what: string
  readonly program: string
  /** Folder with main.go. */
  readonly source: string
  /** Folder in which it is compiled. */
  readonly folder: string
  /** Modules with their versions, such as `go.etcd.io/etcd/server/v3 v3.7.0`. */
  readonly required: ReadonlyArray<string>
  /** Replacements of modules, such as `example.com/a => example.com/b v1.0.0`. */
  readonly replaced: ReadonlyArray<string>
  /** Flags of the linker. */
  readonly linked?: ReadonlyArray<string>
  /** Longest time of the compiler. */
  readonly minutes: number
}

export const compile = (attempt: Attempt, definition: GoProgram): void => {
  const { what, program, source, folder, required, replaced, linked = [], minutes } = definition
  mkdirSync(folder, { recursive: true })
  copyFileSync(join(source, "main.go"), join(folder, "main.go"))
  const block = (keyword: string, lines: ReadonlyArray<string>) =>
    `${keyword} (\n${lines.map((line) => `\t${line}\n`).join("")})\n`
  const file = ["module program\n", "go 1.26.0\n", block("require", required), block("replace", replaced)]
  writeFileSync(join(folder, "go.mod"), file.join("\n"))
  if (attempt(what, "go", ["mod", "tidy"], { cwd: folder, minutes: 5 }) === undefined) return
  const args = ["build", "-p", "2", "-trimpath", `-ldflags=${["-s", "-w", ...linked].join(" ")}`, "-o", program, "."]
  console.log(`Compiling ${what}`)
  const startedAt = performance.now()
  if (attempt(what, "go", args, { cwd: folder, minutes }) === undefined || !existsSync(program)) return
  console.log(`Compiled in ${Math.round((performance.now() - startedAt) / 1000)} s`)
}

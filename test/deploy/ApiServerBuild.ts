/**
 * Compiles a real API server of Kubernetes with its etcd, from modules of Go. This takes about 15 minutes of one core
 * the first time.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as GoModule from "./GoModule.ts"

const version = "1.37.2"

/** Compiles `program` in `folder`, from the sources in `source`. */
export const compile = (program: string, folder: string, source: string, attempt: GoModule.Attempt): void => {
  if (existsSync(program)) return
  const module = GoModule.download(attempt, `k8s.io/kubernetes@v${version}`)
  if (module === undefined) return
  // The module takes its parts from its own folder, which a replacement in another module cannot name.
  const parts = readFileSync(join(module, "go.mod"), "utf8").matchAll(/^\s*(k8s\.io\/[\w-]+) => \.\/staging\//gm)
  const [major = "", minor = ""] = version.split(".")
  const numbers = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor }
  GoModule.compile(attempt, {
    what: `the API server of Kubernetes ${version}`,
    program,
    source,
    folder,
    required: [`k8s.io/kubernetes v${version}`, "go.etcd.io/etcd/server/v3 v3.7.0"],
    replaced: [...parts].map(([, part]) => `${part} => ${part} v0.${version.replace("1.", "")}`),
    linked: Object.entries(numbers).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`),
    minutes: 20,
  })
}

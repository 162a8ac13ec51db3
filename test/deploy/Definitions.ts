/** The definitions of custom resources, from the modules of Go that have them. */
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import * as GoModule from "./GoModule.ts"
import { kserve } from "./KServe.ts"

/** Modules, and the files in them. */
const definitions = [
  ["sigs.k8s.io/gateway-api@v1.6.1", "config/crd/standard/*_{grpc,http}routes.yaml"],
  ["github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases/keda.sh_scaledobjects.yaml"],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd/*_{podmonitors,prometheusrules,servicemonitors}.yaml",
  ],
  [kserve, "config/crd/full/*_{inferenceservices,clusterservingruntimes}.yaml"],
] as const

/** Writes the files into a folder, unless it has them. Returns whether they are new. */
export const collect = (folder: string, attempt: GoModule.Attempt): boolean => {
  const list = join(folder, "modules.txt")
  const wanted = JSON.stringify(definitions)
  if (existsSync(list) && readFileSync(list, "utf8") === wanted) return false
  rmSync(folder, { recursive: true, force: true })
  const files = definitions.map(([module, pattern]) => {
    const found = GoModule.download(attempt, module)
    return found === undefined ? [] : globSync(pattern, { cwd: found }).map((file) => join(found, file))
  })
  if (files.some((found) => found.length === 0)) return false
  mkdirSync(folder, { recursive: true })
  for (const file of files.flat()) copyFileSync(file, join(folder, basename(file)))
  writeFileSync(list, wanted)
  return true
}

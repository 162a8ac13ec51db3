/** KServe's own code, from its module of Go: a program that takes documents as its webhooks and its controller do. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as GoModule from "./GoModule.ts"

const version = "v0.17.0"

/** The newest version of KServe that the proxy of Go has. */
export const kserve = `github.com/kserve/kserve@${version}`

/** Compiles `program` in `folder`, from the sources in `source`. Returns the folder of the module, with its files. */
export const compile = (
  program: string,
  folder: string,
  source: string,
  attempt: GoModule.Attempt,
): string | undefined => {
  const module = GoModule.download(attempt, kserve)
  if (module === undefined || existsSync(program)) return module
  const replaced = readFileSync(join(module, "go.mod"), "utf8").matchAll(/^replace (\S+ => \S+ v\S+)$/gm)
  GoModule.compile(attempt, {
    what: `the code of KServe ${version}`,
    program,
    source,
    folder,
    required: [`github.com/kserve/kserve ${version}`],
    replaced: [...replaced].map(([, line = ""]) => line),
    minutes: 15,
  })
  return module
}

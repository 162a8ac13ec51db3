/** The files of deploy, checked by the tools of Kubernetes. Each test is skipped where its tool is not installed. */
import { spawnSync } from "node:child_process"
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { root } from "../Program.ts"
import * as Kustomize from "./Kustomize.ts"
import { chart, deploy, hasHelm, isInstalled, output, render } from "./Tools.ts"
import { everything, withHpa, withStorage } from "./Values.ts"

/** Schemas that main.ts has prepared; empty otherwise. */
const schemas = process.env["NEREID_DEPLOY_SCHEMAS"] ?? ""

const hasKubeconform = isInstalled("kubeconform", "-v") && existsSync(schemas)
/** Whether there are schemas of KEDA, the Prometheus operator and the Gateway API. */
const hasDefinitions = hasKubeconform && existsSync(join(schemas, "scaledobject-keda-v1alpha1.json"))
const hasKubectl = isInstalled("kubectl", "version", "--client")

/** Checks documents against the schemas. Unknown fields and unknown kinds are errors. */
const conform = (text: string): string => {
  const location = join(schemas, "{{.ResourceKind}}{{.KindSuffix}}.json")
  return output("kubeconform", ["-strict", "-summary", "-schema-location", location], text)
}

describe("the chart", () => {
  it.skipIf(!hasHelm)("has no lint, and needs a repository or a module, and one autoscaler at most", () => {
    expect(output("helm", ["lint", "--strict", "--kube-version=1.33.0", chart])).toContain("0 chart(s) failed")
    expect(() => render({ repository: { claim: "" } })).toThrow("set repository.claim, repository.url or module")
    const both = { autoscaling: { hpa: { enabled: true }, keda: { enabled: true } } }
    expect(() => render(both)).toThrow("enable hpa or keda, not both")
  })

  it.skipIf(!hasHelm || !hasDefinitions).each([
    ["its defaults", {}, 5],
    ["everything", everything, 11],
    ["a module and a HPA", withHpa, 6],
    ["a repository in object storage", withStorage, 5],
  ])("with %s conforms to Kubernetes and to the definitions of its custom resources", (_, values, valid) => {
    expect(conform(render(values))).toContain(`Valid: ${valid}, Invalid: 0, Errors: 0, Skipped: 0`)
  })

  it.skipIf(!hasHelm || !hasDefinitions).each([
    ["Deployment", "spec:\n"],
    ["Service", "spec:\n"],
    ["ScaledObject", "spec:\n"],
    ["ServiceMonitor", "spec:\n"],
    ["PrometheusRule", "  groups:\n    - "],
    ["HTTPRoute", "spec:\n"],
    ["GRPCRoute", "  rules:\n    - "],
  ])("a wrong field of a %s would be found", (kind, place) => {
    const document = render(everything)
      .split(/^---$/m)
      .find((text) => text.includes(`kind: ${kind}\n`))
    const indent = place.endsWith("- ") ? "\n      " : "\n"
    const wrong = document?.replace(place, `${place}${place.endsWith("- ") ? "" : "  "}wrong: 1${indent}`) ?? ""
    expect(wrong).not.toBe(document)
    expect(() => conform(wrong)).toThrow("'wrong' not allowed")
  })

  it.skipIf(!hasHelm)(
    "gives a repository in object storage a cache that is smaller than its volume, and an identity",
    () => {
      const text = render(withStorage)
      expect(text).toContain('- "--model-repository=s3://bucket/models"\n')
      expect(text).not.toContain("--model-repository=/models")
      expect(text).toContain("- --model-cache-directory=/cache\n")
      expect(text).toContain("- --model-cache-size=18000000000\n")
      expect(text).toContain("emptyDir: { sizeLimit: 20G }\n")
      expect(text).toContain("- { name: cache, mountPath: /cache }\n")
      expect(text).toContain('serviceAccountName: "models"\n')
    },
  )

  it.skipIf(!hasHelm)("gives the server the time that it takes to stop", () => {
    const text = render({ drainDelay: 20, exitTimeout: 100 })
    expect(text).toContain("terminationGracePeriodSeconds: 135")
    expect(text).toContain("--drain-delay=20")
    expect(text).toContain("--exit-timeout-secs=100")
  })
})

describe("manifests of the guides", () => {
  const guide = (name: string) => readFileSync(join(root, `docs/guides/${name}.md`), "utf8")

  it.skipIf(!hasHelm)("is a command of Helm that the chart understands", () => {
    const [, args = ""] = /^helm install vision deploy\/helm\/nereid (.*)$/m.exec(guide("kubernetes")) ?? []
    const text = output("helm", ["template", "vision", chart, "--kube-version=1.33.0", ...args.split(" ")])
    expect(text).toContain('image: "registry.example.com/nereid:0.1.0"')
    expect(text).toContain('claimName: "models"')
  })

  it.skipIf(!hasKubeconform)("is a part of a pod that conforms", () => {
    const [, pod = ""] = /^```yaml\nspec:\n([^]*?)^```/m.exec(guide("operations")) ?? []
    expect(pod).toContain("terminationGracePeriodSeconds")
    const text = `apiVersion: apps/v1
kind: Deployment
metadata: { name: nereid }
spec:
  selector: { matchLabels: { app: nereid } }
  template:
    metadata: { labels: { app: nereid } }
    spec:
${pod.replaceAll(/^(?=.)/gm, "    ")}`
    expect(conform(text)).toContain("Valid: 1, Invalid: 0, Errors: 0, Skipped: 0")
    expect(() => conform(text.replace("startupProbe", "startProbe"))).toThrow("'startProbe' not allowed")
  })
})

describe("the files of Kustomize", () => {
  it.skipIf(!hasHelm)("are the chart; node test/deploy/Kustomize.ts writes them anew", () => {
    const folder = join(deploy, "kustomize")
    const files = globSync("**/*.yaml", { cwd: folder }).toSorted()
    const written = new Map(files.map((file) => [file, readFileSync(join(folder, file), "utf8")]))
    expect(written).toEqual(new Map([...Kustomize.files()].toSorted(([a], [b]) => (a < b ? -1 : 1))))
  })

  it.skipIf(!hasKubectl || !hasDefinitions)("build with all components, and conform", () => {
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
      expect(conform(built)).toContain("Valid: 11, Invalid: 0, Errors: 0, Skipped: 0")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("the files of KServe", () => {
  it.skipIf(!hasDefinitions)("conform to KServe's own definitions", () => {
    for (const name of ["runtime", "inferenceservice", "podmonitor"]) {
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

/**
 * The Kustomize files of deploy/kustomize, which are the chart with its defaults. `node test/deploy/Kustomize.ts` writes
 * them anew with Helm, and manifests.test.ts compares them.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { deploy, render } from "./Tools.ts"

interface Part {
  readonly folder: string
  readonly values: unknown
  /** Templates of the chart, one file each. */
  readonly templates: ReadonlyArray<string>
}

const parts: ReadonlyArray<Part> = [
  { folder: "base", values: {}, templates: ["deployment", "services", "availability"] },
  { folder: "components/hpa", values: { autoscaling: { hpa: { enabled: true } } }, templates: ["autoscaling"] },
  { folder: "components/keda", values: { autoscaling: { keda: { enabled: true } } }, templates: ["autoscaling"] },
  {
    folder: "components/monitoring",
    values: {
      monitoring: { serviceMonitor: { enabled: true }, rules: { enabled: true }, dashboard: { enabled: true } },
    },
    templates: ["monitoring"],
  },
  { folder: "components/gateway", values: { gateway: { parentRefs: [{ name: "gateway" }] } }, templates: ["gateway"] },
]

/** The autoscaler sets the number of replicas. */
const withoutReplicas = `patches:
  - target: { kind: Deployment, name: nereid }
    patch: '[{ "op": "remove", "path": "/spec/replicas" }]'
`

/** Each file, by its path below deploy/kustomize. */
export const files = (): ReadonlyMap<string, string> => {
  const all = new Map<string, string>()
  for (const { folder, values, templates } of parts) {
    for (const template of templates) {
      const text = render(values, `--show-only=templates/${template}.yaml`)
      const own = text.replaceAll(/^ +app.kubernetes.io\/managed-by: Helm\n/gm, "")
      // A Kustomization may set another namespace.
      all.set(`${folder}/${template}.yaml`, own.replace('namespace="default",', ""))
    }
    const isBase = folder === "base"
    const [kind, version] = isBase ? ["Kustomization", "v1beta1"] : ["Component", "v1alpha1"]
    const resources = templates.map((template) => `  - ${template}.yaml\n`).join("")
    const head = `apiVersion: kustomize.config.k8s.io/${version}\nkind: ${kind}\nresources:\n${resources}`
    all.set(`${folder}/kustomization.yaml`, templates.includes("autoscaling") ? head + withoutReplicas : head)
  }
  return all
}

if (import.meta.main) {
  for (const [file, text] of files()) {
    const path = join(deploy, "kustomize", file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
}

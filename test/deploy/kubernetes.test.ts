/**
 * A real API server of Kubernetes, with its etcd, accepts the objects of deploy: by the rules in CEL of their
 * definitions, and by the security standards for pods. It has no nodes, so no pod runs. Skipped where the server cannot
 * be compiled.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { root } from "../Program.ts"
import { ApiServer } from "./ApiServer.ts"
import { deploy, hasHelm, hasKServe, isInstalled, render, takenByKServe } from "./Tools.ts"
import { everything, withHpa, withStorage } from "./Values.ts"

const definitions = process.env["NEREID_DEPLOY_DEFINITIONS"] ?? ""
const hasServer = isInstalled("apiserver", "--version") && existsSync(definitions)

if (!hasServer) console.log("Skipped, there is no API server: its tests")

describe.skipIf(!hasServer)("an API server", () => {
  let server: ApiServer
  beforeAll(async () => {
    server = await ApiServer.start()
    server.kubectl(["apply", "--server-side", `--filename=${definitions}`])
    // A definition without a status yet is an error for it.
    const wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]
    await vi.waitFor(() => server.kubectl(wait), { timeout: 60_000, interval: 500 })
    // Answers then have a warning for pods that violate the strictest standard.
    server.kubectl(["label", "namespace", "default", "pod-security.kubernetes.io/warn=restricted"])
  }, 180_000)
  afterAll(() => server?.[Symbol.asyncDispose]())

  const dryRun = (names: ReadonlyArray<string>) => names.map((name) => `${name} serverside-applied (server dry run)`)

  const objects = ["networkpolicy.networking.k8s.io/nereid", "poddisruptionbudget.policy/nereid"]
  const services = ["service/nereid", "service/nereid-pods", "deployment.apps/nereid"]
  const custom = [
    "grpcroute.gateway.networking.k8s.io/nereid-grpc",
    "httproute.gateway.networking.k8s.io/nereid-http",
    "prometheusrule.monitoring.coreos.com/nereid",
    "scaledobject.keda.sh/nereid",
    "servicemonitor.monitoring.coreos.com/nereid",
  ]
  const scaler = "horizontalpodautoscaler.autoscaling/nereid"

  it.skipIf(!hasHelm).each([
    ["its defaults", {}, [...objects, ...services]],
    ["everything", everything, [...objects, "configmap/nereid-dashboard", ...services, ...custom]],
    ["a module and a HPA", withHpa, [...objects, ...services, scaler]],
    ["a repository in object storage", withStorage, [...objects, ...services]],
  ])("accepts the chart with %s, without a warning", (_, values, expected) => {
    expect(server.accepts(render(values)).toSorted()).toEqual(dryRun(expected).toSorted())
  })

  it("accepts the files of Kustomize with the components of the guide", () => {
    const guide = readFileSync(join(root, "docs/guides/kubernetes.md"), "utf8")
    const [, text = ""] = /^# kustomization\.yaml\n([^]*?)^```/m.exec(guide) ?? []
    expect(text).toContain("deploy/kustomize/base")
    const folder = mkdtempSync(join(deploy, "kustomize/.check-"))
    try {
      writeFileSync(join(folder, "kustomization.yaml"), text.replaceAll("deploy/kustomize/", "../"))
      const built = server.kubectl(["kustomize", folder])
      expect(built).toContain("image: registry.example.com/nereid:0.1.0")
      server.kubectl(["create", "namespace", "vision"])
      const names = [...objects, "configmap/nereid-dashboard", ...services, ...custom.slice(2)]
      expect(server.accepts(built).toSorted()).toEqual(dryRun(names).toSorted())
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("accepts the files of KServe, and refuses a wrong field in them", () => {
    const text = ["runtime", "inferenceservice", "podmonitor"].map((name) =>
      readFileSync(join(deploy, `kserve/${name}.yaml`), "utf8"),
    )
    expect(server.accepts(text.join("---\n")).toSorted()).toEqual(
      dryRun([
        "clusterservingruntime.serving.kserve.io/nereid",
        "inferenceservice.serving.kserve.io/flowers",
        "podmonitor.monitoring.coreos.com/nereid",
      ]),
    )
    const wrong = (document: string | undefined, from: string, to: string) => () =>
      server.accepts(document?.replace(from, to) ?? "")
    const [runtime, service] = text
    expect(wrong(runtime, "periodSeconds:", "period:")).toThrow("startupProbe.period: field not declared in schema")
    expect(wrong(runtime, 'version: "1"', "version: 1")).toThrow("supportedModelFormats[0].version: expected string")
    expect(wrong(service, "modelFormat: {", "modelFormat: { kind: x,")).toThrow(
      ".spec.predictor.model.modelFormat.kind: field not declared in schema",
    )
  })

  it.skipIf(!hasKServe)("accepts what KServe makes of them, without a warning", () => {
    const text = ["runtime", "inferenceservice"].map((name) =>
      readFileSync(join(deploy, `kserve/${name}.yaml`), "utf8"),
    )
    const names = ["deployment.apps", "pod", "scaledobject.keda.sh", "service"].map(
      (kind) => `${kind}/flowers-predictor`,
    )
    expect(server.accepts(takenByKServe(text)).toSorted()).toEqual(dryRun(names))
  })

  it.skipIf(!hasHelm)("refuses a wrong field, a wrong value, and what the rules of a definition forbid", () => {
    const text = render(everything)
    expect(() => server.accepts(text.replace("maxReplicaCount: 10", "maxReplicas: 10"))).toThrow(
      ".spec.maxReplicas: field not declared in schema",
    )
    expect(() => server.accepts(text.replace("appProtocol: http", "appProtocol: /"))).toThrow("appProtocol")
    expect(() => server.accepts(text.replace("service: grpc.health.v1.Health", "service: 'a b'"))).toThrow(
      "service must only contain valid characters",
    )
    const privileged = text.replace("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true")
    expect(server.accepts(privileged).join("\n")).toContain('would violate PodSecurity "restricted')
  })

  it.skipIf(!hasHelm)("creates the Deployment and the Services, and an update changes them", () => {
    const apply = (values: unknown) =>
      server.kubectl(["apply", "--server-side", "--validate=strict", "--filename=-"], render(values))
    apply({})
    apply({ replicas: 3 })
    const found = (query: string) => server.kubectl(["get", "deployment,service", `--output=jsonpath=${query}`])
    expect(found("{.items[?(@.kind=='Deployment')].spec.replicas}")).toBe("3")
    expect(found("{.items[?(@.metadata.name=='nereid-pods')].spec.clusterIP}")).toBe("None")
  })
})

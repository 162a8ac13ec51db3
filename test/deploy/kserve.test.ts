/**
 * KServe's own webhooks and controller take the files of deploy/kserve, in a cluster in memory that has KServe's own
 * runtimes. Skipped where KServe's code cannot be compiled.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { deploy, hasKServe, takenByKServe } from "./Tools.ts"

if (!hasKServe) console.log("Skipped, there is no code of KServe: its tests")

const read = (name: string) => readFileSync(join(deploy, `kserve/${name}.yaml`), "utf8")
const runtime = read("runtime")
const service = read("inferenceservice")

/** The objects that KServe makes of documents, by their kinds. */
const made = (...documents: ReadonlyArray<string>): ReadonlyMap<string, Made> => {
  const { items }: { readonly items: ReadonlyArray<Made> } = JSON.parse(takenByKServe(documents))
  return new Map(items.map((item) => [item.kind, item]))
}

interface Made {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly labels: object; readonly annotations: object }
  readonly spec: unknown
}

describe.skipIf(!hasKServe)("KServe", () => {
  it("makes a Deployment, a Service and a ScaledObject of the files", () => {
    const objects = made(runtime, service)
    expect([...objects.keys()]).toEqual(["Deployment", "Pod", "Service", "ScaledObject"])
    for (const { metadata } of objects.values()) expect(metadata.name).toBe("flowers-predictor")
    expect(objects.get("Service")?.spec).toMatchObject({
      ports: [
        { port: 80, targetPort: 8080 },
        { port: 9000, targetPort: 9000, appProtocol: "kubernetes.io/h2c" },
        { port: 8002, targetPort: 8002 },
      ],
    })
    expect(objects.get("ScaledObject")?.spec).toEqual({
      scaleTargetRef: { name: "flowers-predictor" },
      minReplicaCount: 2,
      maxReplicaCount: 10,
      advanced: expect.anything(),
      triggers: [
        {
          // Without a type of the metric, KEDA divides the value by the number of pods.
          type: "prometheus",
          metadata: {
            serverAddress: "http://prometheus-operated.monitoring:9090",
            query: expect.stringMatching(/^sum\(max by \(pod\) \(nereid_saturation\{/),
            threshold: "0.7",
          },
        },
      ],
    })
  })

  it("starts the server with the storage, the name and the port of the metrics in a pod", () => {
    const pod = made(runtime, service).get("Pod")
    // The PodMonitor selects it by this.
    expect(read("podmonitor")).toContain("matchLabels: { app.kubernetes.io/name: nereid }")
    expect(pod?.metadata.labels).toMatchObject({
      "app.kubernetes.io/name": "nereid",
      "serving.kserve.io/inferenceservice": "flowers",
    })
    expect(pod?.metadata.annotations).toMatchObject({
      "prometheus.io/scrape": "true",
      "prometheus.io/port": "8002",
      "prometheus.io/path": "/metrics",
    })
    expect(pod?.spec).toMatchObject({
      terminationGracePeriodSeconds: 55,
      containers: [
        {
          name: "kserve-container",
          args: expect.arrayContaining(["serve", "--model-store=/mnt/models", "--single-model=flowers"]),
          volumeMounts: expect.arrayContaining([
            expect.objectContaining({ mountPath: "/mnt/models", readOnly: true }),
            expect.objectContaining({ mountPath: "/tmp" }),
          ]),
          readinessProbe: { httpGet: { path: "/v2/health/ready", port: 8080 } },
          securityContext: { readOnlyRootFilesystem: true, runAsUser: 1000 },
        },
      ],
    })
  })

  const refused = (documents: ReadonlyArray<string>) => () => made(...documents)

  it("leaves models without a runtime to its own runtimes", () => {
    const other = service.replace("      runtime: nereid\n", "")
    expect(other).not.toBe(service)
    expect(made(runtime, other).get("Pod")?.spec).not.toMatchObject({ containers: [{ image: "nereid:0.1.0" }] })
    const automatic = runtime.replace('version: "1" }', 'version: "1", autoSelect: true, priority: 1 }')
    expect(refused([automatic])).toThrow("same priority assigned for the model format onnx")
    const preferred = runtime.replace('version: "1" }', 'version: "1", autoSelect: true, priority: 3 }')
    expect(made(preferred, other).get("Pod")?.spec).toMatchObject({ containers: [{ image: "nereid:0.1.0" }] })
  })

  it.each([
    ["name: flowers\n", "name: 1flowers\n", "a InferenceService name must consist of"],
    ["protocolVersion: v2", "protocolVersion: v1", "does not support specified protocol version"],
    ["{ name: onnx }", "{ name: sklearn }", "does not support specified framework/version"],
    ["minReplicas: 2", "minReplicas: 11", "'MinReplicas' cannot be greater than MaxReplicas"],
    ["autoscalerClass: keda", "autoscalerClass: other", "not a supported autoscaler class type"],
    ["target: { type: Value, value:", "target: { type: Value, averageValue:", "target threshold value"],
    ["storageUri:", "storageUrl:", 'unknown field "storageUrl"'],
  ])("would refuse %j changed to %j", (from, to, error) => {
    const wrong = service.replace(from, to)
    expect(wrong).not.toBe(service)
    expect(refused([runtime, wrong])).toThrow(error)
  })
})

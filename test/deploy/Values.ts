/** Values of the chart that tests render. */

/** Nearly every value. */
export const everything = {
  autoscaling: { keda: { enabled: true } },
  monitoring: { serviceMonitor: { enabled: true }, rules: { enabled: true }, dashboard: { enabled: true } },
  gateway: {
    parentRefs: [{ name: "public" }],
    httpHostnames: ["models.example.com"],
    grpcHostnames: ["grpc.models.example.com"],
  },
  networkPolicy: { from: [{ podSelector: {} }], scrapeFrom: [{ namespaceSelector: {} }] },
  env: [{ name: "NEREID_LOG_VERBOSE", value: "1" }],
  flags: ["--model-control-mode=poll"],
  repository: { subPath: "vision" },
  service: { annotations: { "example.com/owner": "vision" } },
  podAnnotations: { "example.com/owner": "vision" },
  imagePullSecrets: [{ name: "registry" }],
  nodeSelector: { "kubernetes.io/arch": "amd64" },
  tolerations: [{ key: "models", operator: "Exists" }],
  affinity: { podAntiAffinity: {} },
}

/** An image with a module of its own, and the other autoscaler. */
export const withHpa = { module: "models.ts", repository: { claim: "" }, autoscaling: { hpa: { enabled: true } } }

/** A repository in object storage, in place of a volume. */
export const withStorage = {
  repository: { claim: "", url: "s3://bucket/models", cacheGigabytes: 20 },
  serviceAccount: "models",
}

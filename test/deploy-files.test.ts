/** Names in the files of deploy, which must exist in the product: flags, metrics, ports, paths, the mount of KServe. */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { expect, it } from "vitest"
import { command, freePort, Program, root } from "./Program.ts"
import { plus } from "./fixtures/repository.ts"

const deploy = join(root, "deploy")
const read = (file: string) => readFileSync(join(deploy, file), "utf8")
const files = globSync("**/*.{yaml,json,service,tpl}", { cwd: deploy }).concat("Containerfile")

/** All matches of the first group in these files. */
const all = (pattern: RegExp, names: ReadonlyArray<string> = files): ReadonlyArray<string> => [
  ...new Set(names.flatMap((file) => [...read(file).matchAll(pattern)].map(([, found = ""]) => found))),
]

/** The metrics of a server whose model has answered a request. */
const metricsOf = async (port: string | undefined) => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  return new Map(
    [...text.matchAll(/^([a-z_]+?)(?:_sum|_count|_bucket)?(?:\{(.*)\})? /gm)].map((line) => [line[1], line[2]]),
  )
}

it("each flag and variable is one of nereid serve", async () => {
  const { output } = await new Program([command, "serve", "--help"]).ended
  const known = new Set([...output.matchAll(/--([a-z0-9-]+)/g)].map(([, name]) => name))
  const names = files.filter((file) => file !== "Containerfile")
  // In arguments of a container, a unit, or values of the chart.
  const flags = all(/(?:^ +- "?|serve .*?|, "| )--([a-z][a-z0-9-]+)=/gm, names)
  expect(flags).toEqual(expect.arrayContaining(["drain-delay", "model-store", "grpc-max-connection-age"]))
  expect(flags.filter((flag) => !known.has(flag))).toEqual([])
  const guide = readFileSync(join(root, "docs/guides/operations.md"), "utf8")
  const [block = ""] = /^```yaml\nspec:[^]*?^```/m.exec(guide) ?? []
  const shown = [...block.matchAll(/\b(NEREID_[A-Z_]+)/g)].map(([name]) => name)
  expect(shown).toContain("NEREID_DRAIN_DELAY")
  const variables = [...all(/\b(NEREID_[A-Z_]+)/g), ...shown].map((name) =>
    name.slice("NEREID_".length).toLowerCase().replaceAll("_", "-"),
  )
  expect(variables.filter((flag) => !known.has(flag))).toEqual([])
  expect(read("Containerfile")).toContain('CMD ["serve", "--model-repository=/models"]')
})

it("ports and paths are the defaults of nereid serve", async () => {
  const { output } = await new Program([command, "serve", "--help"]).ended
  for (const [name, port] of [
    ["http", 8000],
    ["grpc", 8001],
    ["metrics", 8002],
  ] as const) {
    expect(output).toMatch(new RegExp(`--${name}-port [^]*?\\(default ${port}\\)`))
    expect(read("helm/nereid/templates/deployment.yaml")).toContain(`{ name: ${name}, containerPort: ${port} }`)
    expect(read("Containerfile")).toMatch(new RegExp(`^EXPOSE .*\\b${port}\\b`, "m"))
  }
  const paths = all(/path: (\/[^,\s}]*)/g)
  expect(paths.toSorted()).toEqual(["/metrics", "/v2/health/live", "/v2/health/ready"])
})

it("the image has the packages that the command line needs", () => {
  const { peerDependencies, dependencies } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"))
  const { name, bin } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"))
  const text = read("Containerfile")
  for (const [peer, range] of Object.entries(peerDependencies)) expect(text).toContain(` ${peer}@${String(range)}`)
  const shared = "@effect/platform-node-shared"
  expect(text).toContain(` ${shared}@${dependencies[shared]}`)
  const main = bin.nereid.replace("./src", `node_modules/${name}/dist`).replace(/ts$/, "js")
  expect(text).toContain(`/opt/nereid/${main}`)
  expect(read("systemd/nereid.service")).toContain(`/opt/nereid/${main} serve`)
  const { version } = JSON.parse(readFileSync(join(root, "packages/cli/package.json"), "utf8"))
  expect(read("helm/nereid/Chart.yaml")).toContain(`appVersion: ${version}\n`)
  expect(read("kserve/runtime.yaml")).toContain(`image: nereid:${version}\n`)
})

it("a server with the arguments of KServe's runtime serves a bare model.onnx, its probes and its metrics", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-kserve-"))
  try {
    mkdirSync(join(folder, "models"))
    writeFileSync(join(folder, "models/model.onnx"), plus(7))
    const [, block = ""] = /^ +args:\n((?: +(?:- .*|#.*)\n)+)/m.exec(read("kserve/runtime.yaml")) ?? []
    const args = [...block.matchAll(/^ +- (.*)$/gm)].map(([, argument = ""]) => argument)
    expect(args).toEqual(expect.arrayContaining(["--http-port=8080", "--grpc-port=9000", "--metrics-port=8002"]))
    const ports = new Map(
      await Promise.all(["8080", "9000", "8002"].map(async (port) => [port, await freePort()] as const)),
    )
    const here = args.map((argument) =>
      argument
        .replace("/mnt/models", join(folder, "models"))
        .replace("{{.Name}}", "flowers")
        .replace(/(port=)(\d+)/, (_, flag, port) => `${flag}${ports.get(port)}`)
        .replace(/(--drain-delay=)\d+/, "$10"),
    )
    await using server = new Program([command, ...here])
    await server.match(/HTTPService/)
    const url = `http://127.0.0.1:${ports.get("8080")}`
    for (const path of all(/path: (\/v2[^,\s}]*)/g, ["kserve/runtime.yaml"])) {
      expect([path, (await fetch(url + path)).status]).toEqual([path, 200])
    }
    const inputs = [{ name: "X", datatype: "FP32", shape: [1, 1], data: [1] }]
    const response = await fetch(`${url}/v2/models/flowers/infer`, { method: "POST", body: JSON.stringify({ inputs }) })
    expect(await response.json()).toMatchObject({ model_name: "flowers", outputs: [{ data: [8] }] })

    const metrics = await metricsOf(String(ports.get("8002")))
    // These appear with the first action of a limit, and with TLS. Their own tests have them.
    const later = ["nereid_limit_actions_total", "nereid_tls_certificate_expiry_seconds"]
    const named = all(/\b(n(?:v|ereid)_[a-z_]+?)(?:_sum|_count)?[{[ )\n"]/g, [
      "helm/nereid/files/alerts.yaml",
      "helm/nereid/files/dashboard.json",
      "helm/nereid/templates/autoscaling.yaml",
      "kserve/inferenceservice.yaml",
    ]).map((name) => name.replace(/_(sum|count)$/, (end) => (metrics.has(name) ? end : "")))
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((name) => !metrics.has(name) && !later.includes(name))).toEqual([])
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it("each panel of the dashboard has an expression, and each label is one of the metrics", () => {
  const { panels } = JSON.parse(read("helm/nereid/files/dashboard.json"))
  const expressions: ReadonlyArray<string> = panels.flatMap(
    ({ targets }: { targets: ReadonlyArray<{ expr: string }> }) => targets.map(({ expr }) => expr),
  )
  expect(expressions.length).toBeGreaterThanOrEqual(panels.length)
  const labels = new Set(
    expressions.flatMap((expr) =>
      [...expr.matchAll(/by \((.*?)\)|(\w+)=~/g)].flatMap(([, by, one]) => (by ?? one ?? "").split(", ")),
    ),
  )
  // Prometheus adds `instance`.
  expect([...labels].toSorted()).toEqual(["instance", "limit", "model", "part", "reason"])
})

it("each configuration that a guide shows is run by a test", () => {
  const shown = globSync("docs/guides/*.md", { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), "utf8").matchAll(/^```(?:yaml|nginx|haproxy|dockerfile|ini|toml)\n(.*)$/gm)].map(
      ([, line = ""]) => `${basename(file)}: ${line}`,
    ),
  )
  expect(shown.toSorted()).toEqual([
    // test/deploy/proxies.test.ts and proxies-tls.test.ts
    "deployment.md: # envoy, in both clusters",
    "deployment.md: # envoy.yaml",
    "deployment.md: # haproxy, in the two backends, instead of default-server",
    "deployment.md: # haproxy.cfg",
    "deployment.md: # nginx, in the two locations, instead of grpc_pass and proxy_pass",
    "deployment.md: # nginx.conf",
    // test/deploy/kubernetes.test.ts, image.test.ts and queries.test.ts
    "kubernetes.md: # kustomization.yaml",
    "kubernetes.md: FROM nereid-base",
    "kubernetes.md: rules:",
    // test/deploy/manifests.test.ts
    "operations.md: spec:",
  ])
})

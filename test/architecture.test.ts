/**
 * Import rules: which packages and folders may import each other, and which modules must not load certain others. The
 * rules are tables, so that a new dependency is a deliberate change.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { builtinModules } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import {
  cycles,
  folderOf,
  loaded,
  type Package,
  packageOf,
  packages,
  resolve,
  shown,
  sources,
  specifiers,
} from "./Imports.ts"

const root = join(import.meta.dirname, "..")

/**
 * protocol → core → {{onnx, worker, python} → repository, image, server, client → cluster, bench} → cli;
 * http2 → server; create-nereid → cli
 */
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  protocol: [],
  core: ["protocol"],
  onnx: ["core", "protocol"],
  worker: ["core"],
  image: ["core"],
  python: ["core", "protocol"],
  repository: ["core", "protocol", "onnx", "worker", "python"],
  http2: [],
  server: ["core", "protocol", "dashboard", "http2"],
  client: ["core", "protocol", "http2"],
  cluster: ["core", "client"],
  bench: ["core", "protocol", "http2"],
  "create-nereid": [],
  cli: ["core", "protocol", "onnx", "python", "repository", "server", "client", "bench", "create-nereid"],
}

/** The folders of each package, the lowest first: a file imports only from its own folder and from those before it. */
const order: Readonly<Record<string, ReadonlyArray<string>>> = {
  core: [
    "gen",
    // Wire data: values, requests and their encoding.
    "tensor",
    "synthetic",
    "error",
    "request",
    "grpc",
    "wire",
    "codec/protobuf",
    "codec/json",
    "codec/generate",
    // Declarations and calls.
    "model",
    "contract",
    "batch",
    "limiter",
    "instance",
    "metrics",
    "transfer",
    "running",
    "configuration",
    "openapi",
    "call",
    // Execution.
    "scheduler",
    "sequence",
    "cache",
    "provide",
    "handler",
    "ensemble",
    "lifecycle",
    "simulation",
    "testing",
    // The public exports.
    ".",
  ],
  server: [
    "error",
    "limit",
    "cache",
    "memory",
    "port",
    "dispatch",
    "trace",
    "log",
    "gateway",
    "live/advice",
    "live",
    "openapi",
    "http",
    "grpc",
    "metrics",
    "announce",
    ".",
  ],
  dashboard: ["live", "."],
  http2: ["frame", "hpack", "header", "connection", "socket", "client"],
  onnx: ["file", "."],
  python: ["wire", "environment", "process", "ports", "."],
  client: ["channel", "grpc", "http", "replicas", "remote", "inspection", "."],
  cluster: ["store", "protocol", "owner", "routing", "."],
  repository: [
    "storage/http",
    "storage/credential",
    "storage/store",
    "storage/cache",
    "directory",
    "mirror",
    "config",
    "plan",
    "onnx",
    "script",
    "python",
    "ensemble",
    "catalogue",
    "export",
    ".",
  ],
  bench: ["target", "request", "http2", "grpc", "http1", "benchmark", "load", "report", "."],
  protocol: [
    "gen/grpc/health/v1",
    "gen/grpc/reflection/v1",
    "gen/grpc/reflection/v1alpha",
    "gen/inference",
    "gen/onnx",
  ],
  cli: ["module", "flags", "watch", "bench", "check", "export", "generate", "."],
}

/** The folders of core that execute models. A client, a contract and a load generator work without them. */
const engine = [
  "scheduler",
  "sequence",
  "cache",
  "provide",
  "handler",
  "ensemble",
  "lifecycle",
  "simulation",
  "testing",
]

const withoutEngine = ["client", "bench"]

describe.each(packages)("$name", (its: Package) => {
  const { name, manifest, files } = its
  const folders = order[name] ?? ["."]

  it("imports only the packages before it, and declares them", () => {
    for (const file of files) {
      for (const specifier of specifiers(file)) {
        const target = packageOf(specifier)
        if (target === undefined) continue
        const edge = `${shown(file)} → ${specifier}`
        expect(allowed[name], edge).toContain(target.name)
        expect(Object.keys(manifest.dependencies ?? {}), edge).toContain(target.manifest.name)
      }
    }
  })

  it("has the folders of its order, and imports only from those before its own", () => {
    expect([...new Set(files.map((file) => folderOf(its, file)))].toSorted()).toEqual(folders.toSorted())
    for (const file of files) {
      for (const specifier of specifiers(file)) {
        const target = specifier.startsWith(".") ? resolve(file, specifier) : undefined
        if (target === undefined || !target.includes("/src/")) continue
        const [from, to] = [folderOf(its, file), folderOf(its, target)]
        expect(folders.indexOf(from), `${shown(file)} → ${shown(target)}`).toBeGreaterThanOrEqual(folders.indexOf(to))
      }
    }
  })

  it("has no files that import each other in a circle, types included", () => {
    expect(cycles(files)).toEqual([])
  })
})

describe("imports are found", () => {
  const folder = mkdtempSync(join(tmpdir(), "nereid-imports-"))
  afterAll(() => rmSync(folder, { recursive: true }))
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }

  it("in statements, of types and values, over several lines, and in calls; not in comments", () => {
    const file = write(
      "all.ts",
      `/**
 * import { no } from "./comment.ts"
 */
import "./effect.ts"
import { one } from "./one.ts"
import {
  two,
} from "./two.ts"
import type { Three } from "./three.ts"
export type Own = "a string"
export * as four from "./four.ts"
const five = await import("./five.ts")
`,
    )
    const values = ["./effect.ts", "./one.ts", "./two.ts", "./four.ts", "./five.ts"]
    expect(specifiers(file).toSorted()).toEqual([...values, "./three.ts"].toSorted())
    expect(specifiers(file, true).toSorted()).toEqual(values.toSorted())
  })

  it("in circles, types included", () => {
    const files = [
      write("a.ts", 'import { b } from "./b.ts"'),
      write("b.ts", 'import type { C } from "./c.ts"'),
      write("c.ts", 'const a = import("./a.ts")'),
      write("d.ts", 'import { a } from "./a.ts"'),
    ]
    expect(cycles(files)).toEqual([["a.ts", "b.ts", "c.ts"]])
    expect(cycles(files.slice(1))).toEqual([])
  })
})

it.each(withoutEngine)("%s imports nothing of core's engine, types included", (name) => {
  for (const file of packages.find((other) => other.name === name)?.files ?? []) {
    for (const module of loaded(file)) {
      expect(engine, `${shown(file)} loads ${module}`).not.toContain(/packages\/core\/src\/([^/]+)\//.exec(module)?.[1])
    }
    for (const specifier of specifiers(file)) {
      const [, folder] = /^@nereid\/core\/internal\/([^/]+)\//.exec(specifier) ?? []
      expect(engine, `${shown(file)} → ${specifier}`).not.toContain(folder)
    }
  }
})

it("core knows no socket, file or thread", () => {
  const builtins = new Set([...builtinModules, ...builtinModules.map((name) => `node:${name}`)])
  for (const file of sources(join(root, "packages/core/src"))) {
    for (const specifier of specifiers(file)) {
      expect(builtins.has(specifier) || specifier.startsWith("@effect/platform"), `${file} → ${specifier}`).toBe(false)
    }
  }
})

it("a file thread loads only what it needs", () => {
  const modules = [...loaded(join(root, "packages/onnx/src/file/fileWorker.ts"))].filter((name) =>
    name.includes("/src/"),
  )
  expect(modules.map(shown)).toEqual(["fileWorker.ts", "FileCall.ts"].map((name) => `packages/onnx/src/file/${name}`))
})

it("the worker of an ONNX instance loads without Effect", () => {
  const modules = [...loaded(join(root, "packages/onnx/src/worker.ts"))]
  expect(modules).toContain("onnxruntime-node")
  expect(modules.filter((name) => name === "effect" || name.startsWith("effect/"))).toEqual([])
})

it("the client for browsers loads nothing of Node, and nothing of core's engine", () => {
  const modules = [...loaded(join(root, "packages/client/src/browser.ts"))]
  expect(modules.some((module) => module.endsWith("FetchChannel.ts"))).toBe(true)
  const elsewhere = modules.filter((module) => !module.startsWith("/"))
  expect(elsewhere.filter((name) => name !== "effect" && !name.startsWith("effect/"))).toEqual([])
  for (const file of modules.filter((module) => module.startsWith("/"))) {
    const code = readFileSync(file, "utf8").replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "")
    expect(code, file).not.toMatch(/\bBuffer\.(from|alloc|concat)|\bprocess\.|\bsetImmediate\b|\brequire\(/)
    expect(engine, file).not.toContain(/packages\/core\/src\/([^/]+)\//.exec(file)?.[1])
  }
})

it("no source file reaches into another package's files", () => {
  for (const { name, files } of packages) {
    for (const file of files) {
      for (const specifier of specifiers(file)) {
        if (!specifier.startsWith(".")) continue
        expect(resolve(file, specifier), shown(file)).toMatch(new RegExp(`/packages/${name}/(src/|package\\.json)`))
      }
    }
  }
})

it("the top level holds what it should", () => {
  const entries = readdirSync(root).filter((name) => !name.startsWith(".") && !["node_modules", "dist"].includes(name))
  expect(entries.toSorted()).toEqual([
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "buf.gen.yaml",
    "deploy",
    "docs",
    "examples",
    "package-lock.json",
    "package.json",
    "packages",
    "proto",
    "test",
    "tsconfig.json",
  ])
})

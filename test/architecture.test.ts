/**
 * The fences: which package may import which, and the files that must stay free of what they must not load. A table, so
 * that a new edge is a decision and not an accident.
 */
import { readdirSync, readFileSync } from "node:fs"
import { builtinModules } from "node:module"
import { dirname, join, relative } from "node:path"
import { expect, it } from "vitest"

const root = join(import.meta.dirname, "..")

/** protocol → core → {{onnx, worker} → repository, image, server, client, bench} → cli */
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  protocol: [],
  core: ["protocol"],
  onnx: ["core", "protocol"],
  worker: ["core"],
  image: ["core"],
  repository: ["core", "protocol", "onnx", "worker"],
  server: ["core", "protocol"],
  client: ["core", "protocol"],
  bench: ["core", "protocol"],
  cli: ["core", "protocol", "onnx", "repository", "server", "client", "bench"],
}

const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && !entry.name.endsWith(".test.ts"))
    .map((entry) => join(entry.parentPath, entry.name))

const imported = /(?:^|\n)\s*(?:import|export)\b(?:[^"'`;]*?\bfrom)?\s*["']([^"']+)["']/g

const imports = (file: string): ReadonlyArray<string> =>
  [...readFileSync(file, "utf8").matchAll(imported)].flatMap(([, specifier]) => specifier ?? [])

const packages = Object.keys(allowed).map((name) => ({ name, files: sources(join(root, "packages", name, "src")) }))

it.each(packages)("$name imports only the packages before it, and declares them", ({ name, files }) => {
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"))
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) {
    for (const specifier of imports(file)) {
      const target = /^@nereid\/([^/]+)/.exec(specifier)?.[1]
      // By its own name a package finds its worker, from source as when built.
      if (target === undefined || specifier === `@nereid/${name}/worker`) continue
      const edge = `${relative(root, file)} → ${specifier}`
      expect(allowed[name], edge).toContain(target)
      expect(Object.keys(manifest.dependencies), edge).toContain(`@nereid/${target}`)
    }
  }
})

it("core knows no socket, file or thread", () => {
  const builtins = new Set([...builtinModules, ...builtinModules.map((name) => `node:${name}`)])
  for (const file of sources(join(root, "packages/core/src"))) {
    for (const specifier of imports(file)) {
      expect(builtins.has(specifier) || specifier.startsWith("@effect/platform"), `${file} → ${specifier}`).toBe(false)
    }
  }
})

/** Where the modules are that core lets others import. */
const core: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(join(root, "packages/core/package.json"), "utf8"),
).exports

/** Every module that a file loads, itself included. Type-only imports are gone when it runs. */
const loaded = (file: string, seen = new Set<string>()): ReadonlySet<string> => {
  if (seen.has(file)) return seen
  seen.add(file)
  const runtime = readFileSync(file, "utf8").replaceAll(/(?:import|export) type [^"']*["'][^"']+["']/g, "")
  for (const [, specifier = ""] of runtime.matchAll(imported)) {
    const module = /^@nereid\/core\/(\w+)$/.exec(specifier)?.[1]
    if (specifier.startsWith(".")) loaded(join(dirname(file), specifier), seen)
    else if (module !== undefined) loaded(join(root, "packages/core", core[`./${module}`] ?? module), seen)
    else seen.add(specifier)
  }
  return seen
}

it("the worker of an ONNX instance loads without Effect", () => {
  const modules = [...loaded(join(root, "packages/onnx/src/worker.ts"))]
  expect(modules).toContain("onnxruntime-node")
  expect(modules.filter((name) => name === "effect" || name.startsWith("effect/"))).toEqual([])
})

it("the client for browsers loads nothing of Node", () => {
  const modules = [...loaded(join(root, "packages/client/src/browser.ts"))]
  expect(modules.some((module) => module.endsWith("FetchChannel.ts"))).toBe(true)
  const packages = modules.filter((module) => !module.startsWith("/"))
  expect(packages.filter((name) => name !== "effect" && !name.startsWith("effect/"))).toEqual([])
  for (const file of modules.filter((module) => module.startsWith("/"))) {
    const code = readFileSync(file, "utf8").replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "")
    expect(code, file).not.toMatch(/\bBuffer\.(from|alloc|concat)|\bprocess\.|\bsetImmediate\b|\brequire\(/)
  }
})

it("nothing outside examples and tests reaches into another package's files", () => {
  for (const { files } of packages) {
    for (const file of files) {
      for (const specifier of imports(file)) expect(specifier, file).not.toMatch(/^(\.\.\/){2,}/)
    }
  }
})

it("the top level holds what it should", () => {
  const entries = readdirSync(root).filter((name) => !name.startsWith(".") && !["node_modules", "dist"].includes(name))
  expect(entries.toSorted()).toEqual([
    "LICENSE",
    "README.md",
    "buf.gen.yaml",
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

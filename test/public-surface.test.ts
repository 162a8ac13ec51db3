/**
 * The public API: the modules of each package and their exports. Exports below `internal/` are for other packages of
 * this repository, and may change in any release.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { packageOf, packages, resolve, shown, sources, specifiers } from "./Imports.ts"

const root = join(import.meta.dirname, "..")

/** Messages and services, generated from the protos. */
const generated: ReadonlyArray<string> = ["generated"]

/** Names that exist at run time; types are listed with them. */
const surface: Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>> = {
  bench: {
    ".": ["Arrivals", "ClosedLoop", "GrpcStream", "GrpcUnary", "HttpInfer", "Lane", "Metronome", "OpenLoop"],
  },
  cli: {},
  "create-nereid": {},
  client: {
    ".": ["Client"],
    "./browser": ["Client"],
  },
  cluster: {
    ".": ["Cluster", "SequenceStore"],
  },
  core: {
    ".": [
      "Errors",
      "InstanceContext",
      "Logits",
      "Metrics",
      "Model",
      "RateLimit",
      "Registry",
      "RequestContext",
      "Tensor",
    ],
    "./Errors": [
      "AlreadyExists",
      "Cancelled",
      "DeadlineExceeded",
      "DeclaredFailure",
      "ExecutionFailed",
      "InvalidRequest",
      "MalformedRequest",
      "ModelNotFound",
      "ModelNotReady",
      "QueueFull",
      "QueueTimeout",
      "RegionExists",
      "RegionFailed",
      "RegionNotFound",
      "SequenceNotFound",
      "Unavailable",
      "Unknown",
      "Unrecoverable",
      "Unsupported",
      "isInferenceError",
    ],
    "./InstanceContext": ["InstanceContext"],
    "./Logits": ["argmax", "argmaxRows", "sigmoid", "softmax", "topK"],
    "./Metrics": ["counter", "gauge", "histogram"],
    "./Model": [
      "Service",
      "WarmUpFailed",
      "batch",
      "bind",
      "each",
      "family",
      "iterate",
      "onDemand",
      "orUnavailable",
      "perSequence",
      "requests",
      "sequence",
      "sequenceBatch",
      "sequenceStream",
      "stream",
      "streamBatch",
    ],
    "./Registry": ["Registry"],
    "./RequestContext": ["RequestContext"],
    "./Simulation": ["constant", "poisson", "run", "runSequences", "sequences"],
    "./Tensor": [
      "BF16",
      "BOOL",
      "BYTES",
      "FP16",
      "FP32",
      "FP64",
      "INT16",
      "INT32",
      "INT64",
      "INT8",
      "Tensor",
      "UINT16",
      "UINT32",
      "UINT64",
      "UINT8",
      "concat",
      "elementCount",
      "fromNested",
      "json",
      "labels",
      "make",
      "map",
      "of",
      "optional",
      "reshape",
      "scalar",
      "slice",
      "toNested",
      "utf8",
      "zipWith",
    ],
    "./Testing": ["advance", "model", "start"],
  },
  dashboard: {
    ".": ["PageFiles"],
    "./PageFiles": ["headers", "paths", "read", "readOne"],
  },
  http2: {},
  image: {
    ".": ["Picture", "Pixels"],
    "./Picture": ["field"],
  },
  onnx: {
    ".": ["Onnx"],
  },
  protocol: {
    "./grpc_service": generated,
    "./model_config": generated,
    "./health": generated,
    "./reflection": generated,
    "./reflection_v1alpha": generated,
    "./onnx": generated,
  },
  repository: {
    ".": ["ModelScript", "Repository", "exportRepository"],
  },
  server: {
    ".": ["Logging", "ServeError", "Server"],
    "./Logging": ["Logging", "current", "layer", "through"],
    "./Server": ["Server", "layer", "start", "teardown"],
  },
  python: {
    ".": ["Python"],
  },
  worker: {
    ".": ["Worker"],
  },
}

const isInternal = (path: string): boolean => path.startsWith("./internal/")

const internal = /(?:@nereid\/[a-z\d]+|create-nereid)\/internal\/[\w/]+/g

/** All scripts of a folder, tests included. */
const scripts = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !/(^|\/)(node_modules|\.)/.test(file))
    .map((file) => join(root, folder, file))

const exported = ({ manifest }: (typeof packages)[number]): ReadonlyArray<readonly [string, string]> =>
  Object.entries(manifest.exports ?? {})

it.each(packages)("$name: its public modules, and what they export", async ({ name, ...rest }) => {
  const modules = exported({ name, ...rest }).filter(([path]) => !isInternal(path))
  expect(modules.map(([path]) => path)).toEqual(Object.keys(surface[name] ?? {}))
  // One for each, and the index of all.
  expect(modules.length).toBeLessThanOrEqual(11)
  for (const [path, file] of modules) {
    const names = surface[name]?.[path]
    if (names === generated) continue
    const module: object = await import(join(root, "packages", name, file))
    expect(Object.keys(module).toSorted(), path).toEqual(names)
  }
})

it("every public module describes its purpose", () => {
  for (const { name, ...rest } of packages) {
    for (const [path, file] of exported({ name, ...rest })) {
      if (isInternal(path) || surface[name]?.[path] === generated) continue
      const text = readFileSync(join(root, "packages", name, file), "utf8")
      expect(text, `${name} ${path}`).toMatch(/^\/\*\*(?! @)[^]{40,}?\*\//)
    }
  }
})

it("every internal export is used by a sibling or a test, and is in the folder of its path", () => {
  const used = new Set(
    ["packages", "test"].flatMap(scripts).flatMap((file) => readFileSync(file, "utf8").match(internal) ?? []),
  )
  for (const one of packages) {
    for (const [path, file] of exported(one)) {
      if (!isInternal(path)) continue
      expect([...used], path).toContain(`${one.manifest.name}${path.slice(1)}`)
      expect(file).toBe(`./src/${path.slice("./internal/".length)}.ts`)
    }
  }
})

it("no file is both public and internal", () => {
  for (const one of packages) {
    const files = exported(one).map(([, file]) => file)
    expect(files.filter((file, index) => files.indexOf(file) !== index)).toEqual([])
  }
})

it("examples and guides import nothing that is internal", () => {
  const documents = readdirSync(join(root, "docs/guides")).map((name) => join(root, "docs/guides", name))
  for (const file of [join(root, "README.md"), ...documents, ...sources(join(root, "examples"))]) {
    expect(readFileSync(file, "utf8"), shown(file)).not.toMatch(/@nereid\/[a-z]+\/internal\//)
  }
})

it("every import between packages is exported", () => {
  for (const { files } of packages) {
    for (const file of files) {
      for (const specifier of specifiers(file)) {
        if (packageOf(specifier) === undefined) continue
        expect(resolve(file, specifier), `${shown(file)} → ${specifier}`).toBeDefined()
      }
    }
  }
})

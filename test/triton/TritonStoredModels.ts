/**
 * The repository of conformance/StoredModels.ts for Triton: its configurations as they are, and Python models in place
 * of its files. `unavailable` has the reason for each model that Triton cannot have.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { BrokenModel } from "../conformance/BrokenModel.ts"
import { configs } from "../conformance/StoredConfigs.ts"
import { stored, versioned, versions } from "../conformance/StoredModels.ts"
import { broken } from "../conformance/StoredRefusals.ts"
import * as PythonModel from "./PythonModel.ts"
import { standIns, without } from "./StandIns.ts"

type Config = string | Uint8Array

const isEnsemble = (config: Config) => /platform\s*:\s*"ensemble"/.test(String(config))

/** A configuration that names Nereid's backend names Python's. */
const inPython = (config: Config): Config =>
  typeof config === "string" ? config.replaceAll('backend: "nereid"', 'backend: "python"') : config

const noOnnx = "the contents of an ONNX file: this Triton has no ONNX Runtime backend"

const needsJavaScript = "a script that needs JavaScript"

const otherBackend = "a configuration of the ONNX Runtime backend, which this Triton lacks"

interface Written {
  readonly python: ReadonlyArray<PythonModel.PythonModel>
  /** Ensembles, and models whose directory is written as it is. */
  readonly plain: ReadonlyArray<{ readonly name: string; readonly config: Config; readonly files: Files }>
  /** Reasons by the name of the model. */
  readonly unavailable: ReadonlyMap<string, string>
}

type Files = Readonly<Record<string, string | Uint8Array>>

/** Models that fail by their configuration alone, whatever their file is. */
const byConfiguration = ({ isUnreadable, reason }: BrokenModel) =>
  isUnreadable === true || /at least one version|unable to find backend/.test(String(reason))

const isScript = (files: Files) => Object.keys(files).some((file) => file.endsWith(".js"))

/** Why Triton cannot have a broken model; undefined if it can. */
const problem = (one: BrokenModel): string | undefined => {
  const { config, files = {}, isUnreadable = false } = one
  if (isEnsemble(config)) return undefined
  if (/onnxruntime/.test(String(config)) && !isUnreadable) return otherBackend
  if (byConfiguration(one)) return undefined
  return isScript(files) ? needsJavaScript : noOnnx
}

/** The file decides on the backend where the configuration does not. */
const brokenFiles = (name: string, { config, files = { "1/model.onnx": "" } }: BrokenModel): Files =>
  Object.fromEntries(
    Object.entries(files).map(([path, content]) =>
      /^1\/model\.(?:onnx|js)$/.test(path)
        ? ["1/model.py", PythonModel.program({ name, config, code: PythonModel.echoToY })]
        : [path, content],
    ),
  )

/** Is not loaded at the start. */
const idle = "idle"

const latest = standIns["latest"]

const make = (): Written => {
  const python: Array<PythonModel.PythonModel> = []
  const plain: Array<Written["plain"][number]> = []
  const unavailable = new Map<string, string>()
  for (const one of stored) {
    const { name, config = "", more = {} } = one
    const standIn = standIns[name]
    if (isEnsemble(config)) plain.push({ name, config, files: { "1/.keep": "", ...more } })
    else if (standIn === undefined) unavailable.set(name, without(one))
    else python.push({ name, ...standIn, config: standIn.config ?? config, files: more })
  }
  for (const [name, policy] of Object.entries(versioned)) {
    python.push({ name, ...latest, config: (latest?.config ?? "") + policy, versions })
  }
  python.push({ name: idle, ...standIns["bare"], config: standIns["bare"]?.config ?? "" })
  for (const [name, { config, files = {} }] of Object.entries(configs)) {
    if (isEnsemble(config)) plain.push({ name, config, files })
    else if (Object.keys(files).some((file) => file.endsWith(".onnx"))) unavailable.set(name, noOnnx)
    else if (isScript(files)) unavailable.set(name, needsJavaScript)
    else python.push({ name, config: inPython(config), code: PythonModel.echoToY })
  }
  for (const [name, one] of Object.entries(broken)) {
    const reason = problem(one)
    if (reason !== undefined) unavailable.set(name, reason)
    else plain.push({ name, config: inPython(one.config), files: brokenFiles(name, one) })
  }
  // An ensemble needs its models, unless its configuration is wrong by itself.
  const needing = plain.filter(({ name, config }) => isEnsemble(config) && broken[name]?.isUnreadable !== true)
  for (let before = -1; before < unavailable.size;) {
    before = unavailable.size
    for (const { name, config } of needing) {
      const missing = [...String(config).matchAll(/model_name: "(\w+)"/g)].find(([, step = ""]) =>
        unavailable.has(step),
      )
      if (missing !== undefined) unavailable.set(name, unavailable.get(missing[1] ?? "") ?? "")
    }
  }
  const isAvailable = ({ name }: { readonly name: string }) => !unavailable.has(name)
  return { python: python.filter(isAvailable), plain: plain.filter(isAvailable), unavailable }
}

const { python, plain, unavailable } = make()

export { unavailable }

/** Names of the models to load at the start. */
export const names: ReadonlyArray<string> = [...python, ...plain]
  .map(({ name }) => name)
  .filter((name) => name !== idle)

/** Writes the repository. */
export const write = (directory: string): void => {
  for (const model of python) PythonModel.write(directory, model)
  for (const { name, config, files } of plain) {
    for (const [path, content] of Object.entries({ "config.pbtxt": config, ...files })) {
      const file = join(directory, name, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content)
    }
  }
}

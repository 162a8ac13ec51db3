/** The models of the server, and what each is. */
import { signal } from "@preact/signals"
import { json, post } from "./http.ts"
import * as Model from "./Model.ts"
import type { IndexEntry, ModelConfig, ModelMetadata } from "./Protocol.ts"
import { Refusal } from "./Refusal.ts"

/** The repository index; undefined until the server has sent it. */
export const index = signal<ReadonlyArray<IndexEntry> | undefined>(undefined)

/** Why the index could not be read; undefined after a success. */
export const indexProblem = signal<Refusal | undefined>(undefined)

export const refresh = async (): Promise<void> => {
  try {
    const response = await post("/v2/repository/index", {})
    const entries: ReadonlyArray<IndexEntry> = await response.json()
    indexProblem.value = undefined
    // An unchanged index keeps its identity, so that nothing is drawn again.
    if (JSON.stringify(entries) === JSON.stringify(index.value)) return
    described.clear()
    index.value = entries
  } catch (error) {
    indexProblem.value = Refusal.of(error)
  }
}

const described = new Map<string, Promise<Model.Model>>()

/** Describes a version of a model, once until a model changes. */
export const describe = (name: string, version: string): Promise<Model.Model> => {
  const path = modelPath(name, version)
  const known = described.get(path)
  if (known !== undefined) return known
  const description = Promise.all([json<ModelMetadata>(path), json<ModelConfig>(`${path}/config`)]).then(
    ([metadata, config]) => Model.make(version, metadata, config),
  )
  described.set(path, description)
  description.catch(() => described.delete(path))
  return description
}

export const modelPath = (name: string, version: string): string => {
  const model = `/v2/models/${encodeURIComponent(name)}`
  return version === "" ? model : `${model}/versions/${encodeURIComponent(version)}`
}

/** Loads a model, or loads it again; `config` replaces its configuration. */
export const load = async (name: string, config?: string): Promise<void> => {
  const path = `/v2/repository/models/${encodeURIComponent(name)}/load`
  try {
    await post(path, config === undefined ? {} : { parameters: { config } })
  } finally {
    await refresh()
  }
}

/** Unloads a model; `dependents`: of an ensemble, also the models that only it uses. */
export const unload = async (name: string, dependents: boolean): Promise<void> => {
  const path = `/v2/repository/models/${encodeURIComponent(name)}/unload`
  try {
    await post(path, { parameters: { unload_dependents: dependents } })
  } finally {
    await refresh()
  }
}

/**
 * Whether a script answers batches or streams responses, which its configuration must agree with. A script is an object
 * with the same members in both cases; only the function that types it, or the kind of `execute`, tells.
 */

export type ScriptKind = "batch" | "stream"

const marked = new WeakMap<object, ScriptKind>()

export const mark = (script: object, kind: ScriptKind): void => void marked.set(script, kind)

/** Returns undefined for a plain function in an unmarked object, which may be either. */
export const of = (script: { readonly execute: unknown }): ScriptKind | undefined =>
  marked.get(script) ?? byFunction.get(Object.prototype.toString.call(script.execute))

/** A batch is never answered by a generator, nor a stream by a promise. */
const byFunction: ReadonlyMap<string, ScriptKind> = new Map([
  ["[object GeneratorFunction]", "stream"],
  ["[object AsyncGeneratorFunction]", "stream"],
  ["[object AsyncFunction]", "batch"],
])

/** Returns what is wrong with a script whose configuration is for the other kind, and the line to change. */
export const problem = (kind: ScriptKind | undefined, isDecoupled: boolean): string | undefined => {
  const decoupled = "model_transaction_policy { decoupled: true }"
  if (isDecoupled && kind === "batch") {
    const remedy = `remove that line, or write ModelScript.stream({ execute: async function* (request) { yield … } })`
    return `answers batches, but config.pbtxt has ${decoupled}: ${remedy}`
  }
  if (!isDecoupled && kind === "stream") {
    const remedy = `add that line, or write ModelScript.define({ execute: (requests) => requests.map(…) })`
    return `streams its responses, but config.pbtxt does not have ${decoupled}: ${remedy}`
  }
  return undefined
}

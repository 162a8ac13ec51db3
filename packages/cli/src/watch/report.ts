/**
 * Reports the files that a version imports to its supervisor. Node loads this module before everything else, in each
 * thread (`--import`). Packages in node_modules, and Node's own modules, are not reported.
 */
import { registerHooks } from "node:module"
import { fileURLToPath } from "node:url"
import { BroadcastChannel, isMainThread } from "node:worker_threads"
import { isSupervised, send } from "./Supervision.ts"

const report = (path: string, from: BroadcastChannel): void => {
  if (isMainThread) send({ type: "imported", path })
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's channel has no origin
  else from.postMessage(path)
}

/** Returns the path of a file of the project. */
const projectFile = (url: string): string | undefined => {
  if (!url.startsWith("file:") || url.includes("/node_modules/")) return undefined
  const { href } = new URL(url)
  return fileURLToPath(href.replace(/[?#].*$/, ""))
}

if (isSupervised()) {
  // Threads have no channel to the supervisor.
  const threads = new BroadcastChannel("nereid-imports")
  if (isMainThread) threads.addEventListener("message", ({ data }) => send({ type: "imported", path: String(data) }))
  threads.unref()
  const seen = new Set<string>()
  const add = (url: string) => {
    const path = projectFile(url)
    if (path === undefined || seen.has(path)) return
    seen.add(path)
    report(path, threads)
  }
  registerHooks({
    resolve: (specifier, context, next) => {
      try {
        const resolved = next(specifier, context)
        add(resolved.url)
        return resolved
      } catch (error) {
        // A file that does not exist may be created.
        const missing = /^(\.{0,2}\/|file:)/.test(specifier) ? URL.parse(specifier, context.parentURL) : null
        if (missing !== null) add(missing.href)
        throw error
      }
    },
  })
}

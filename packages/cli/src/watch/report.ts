/**
 * Reports the files that a version imports to its supervisor. Node loads this module before everything else, in each
 * thread (`--import`). Packages in node_modules, and Node's own modules, are not reported.
 */
import { registerHooks } from "node:module"
import { fileURLToPath } from "node:url"
import { BroadcastChannel, isMainThread } from "node:worker_threads"
import { isSupervised, send } from "./Supervision.ts"

/** Returns the path of a file of the project. */
const projectFile = (url: string): string | undefined => {
  if (!url.startsWith("file:") || url.includes("/node_modules/")) return undefined
  const { href } = new URL(url)
  return fileURLToPath(href.replace(/[?#].*$/, ""))
}

if (isSupervised()) {
  // Threads have no channel to the supervisor.
  const threads = new BroadcastChannel("nereid-imports")
  threads.unref()
  const seen = new Set<string>()
  let unsent: Array<string> = []
  const flush = () => {
    const paths = unsent
    unsent = []
    if (paths.length === 0) return
    if (isMainThread) send({ type: "imported", paths })
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's channel has no origin
    else threads.postMessage(paths)
  }
  const add = (path: string) => {
    if (seen.has(path)) return
    seen.add(path)
    // Hundreds of small messages would fill the channel; those that a process has not written are lost when it exits.
    if (unsent.push(path) === 1) setImmediate(flush)
  }
  const addUrl = (url: string) => {
    const path = projectFile(url)
    if (path !== undefined) add(path)
  }
  if (isMainThread) threads.addEventListener("message", ({ data }) => (data as ReadonlyArray<string>).forEach(add))
  process.on("exit", flush)
  registerHooks({
    resolve: (specifier, context, next) => {
      try {
        const resolved = next(specifier, context)
        addUrl(resolved.url)
        return resolved
      } catch (error) {
        // A file that does not exist may be created.
        const missing = /^(\.{0,2}\/|file:)/.test(specifier) ? URL.parse(specifier, context.parentURL) : null
        if (missing !== null) addUrl(missing.href)
        throw error
      }
    },
  })
}

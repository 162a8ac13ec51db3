/** Public API for browsers: the same clients over HTTP, with `fetch`. */
export * as Client from "./BrowserClient.ts"

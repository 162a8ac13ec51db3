/** What users import in browsers: the same clients over HTTP, by `fetch`. */
export * as Client from "./BrowserClient.ts"

/** What users import in browsers: the same clients over `fetch`, by gRPC-Web or the Connect protocol. */
export * as Client from "./BrowserClient.ts"

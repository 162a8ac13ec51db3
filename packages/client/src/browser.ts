export * as Client from "./BrowserClient.ts"

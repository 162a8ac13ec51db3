/** Public API: `Client.layer` provides a model that another server runs, `Client.connect` calls it with promises. */
export * as Client from "./Client.ts"

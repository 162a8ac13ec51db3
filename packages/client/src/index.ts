export * as Client from "./Client.ts"

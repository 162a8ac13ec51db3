/** Public API of this package. Code inside the repository imports the modules directly. */
export * as Logging from "./log/Logging.ts"
export * as Server from "./Server.ts"
export { ServeError } from "./error/ServeError.ts"

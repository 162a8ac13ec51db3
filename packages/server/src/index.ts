/** What users import. Inside the repository, import the module itself. */
export * as Logging from "./log/Logging.ts"
export * as Server from "./Server.ts"
export { ServeError } from "./error/ServeError.ts"

/** Public API of this package. Code inside the repository imports the modules directly. */
export * as PageFiles from "./PageFiles.ts"

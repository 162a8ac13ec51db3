/**
 * The young generation of V8's heap. While a server starts, most objects are modules, which stay. The young generation
 * would grow by them and never shrink, so main.ts sets its growth factor to 1 until the server has started.
 */
import { setFlagsFromString } from "node:v8"

/** Lets it grow with the load, by V8's default factor. */
export const grow = (): void => setFlagsFromString("--semi-space-growth-factor=2")

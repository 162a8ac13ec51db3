/**
 * Public API for servers. A contract that clients also load imports `@nereid/image/Picture`, which loads no decoder.
 */
export * as Picture from "./Picture.ts"
export * as Pixels from "./Pixels.ts"

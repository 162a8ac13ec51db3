/** What servers import. A contract, which clients load too, imports `@nereid/image/Picture`, which loads no decoder. */
export * as Picture from "./Picture.ts"
export * as Pixels from "./Pixels.ts"

/** Encoding of paths and queries as RFC 3986 has it, and signatures require it: `!'()*` are encoded too. */

export const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Leaves slashes. */
export const encodePath = (path: string): string => path.split("/").map(encode).join("/")

export type Query = ReadonlyArray<readonly [name: string, value: string]>

export const encodeQuery = (query: Query): string =>
  query.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&")

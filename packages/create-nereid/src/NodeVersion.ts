/**
 * Compares the version of Node with the supported range. Like main.ts, the module must load in every version of Node
 * that has ES modules, so that an old one gets a message instead of a syntax error.
 */

/** `needed` is a range as in `engines` of a package, such as ">=22.19". */
export const isSupported = (version: string, needed: string): boolean => {
  const actual = parts(version)
  const minimum = parts(needed.replace(/^>=/, ""))
  const differs = minimum.findIndex((part, index) => actual[index] !== part)
  return differs === -1 || Number(actual[differs]) > Number(minimum[differs])
}

const parts = (version: string): ReadonlyArray<number> => version.split(".").map((part) => Number.parseInt(part, 10))

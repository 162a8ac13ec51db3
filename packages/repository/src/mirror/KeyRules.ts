/** Which keys of objects may become paths on disk. No key may lead out of the directory of its model. */

/** Maximum bytes of a key, and of a name in it. */
const maxKeyBytes = 1024
const maxNameBytes = 255

/** Maximum names in a key. */
const maxDepth = 32

/** Names of devices, and characters, that Windows does not allow. */
const reservedNames = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/i
const reservedCharacters = /[<>:"|?*]|[. ]$/

/** Why a key cannot be a path; undefined if it can. `isWindows`: whether the path is for Windows. */
export const problem = (key: string, isWindows = process.platform === "win32"): string | undefined => {
  if (Buffer.byteLength(key) > maxKeyBytes) return `it has more than ${maxKeyBytes} bytes`
  if (!key.isWellFormed()) return "it is not valid Unicode"
  const names = (key.endsWith("/") ? key.slice(0, -1) : key).split("/")
  if (names.length > maxDepth) return `it has more than ${maxDepth} names`
  for (const name of names) {
    if (name === "") return "a name in it is empty"
    if (name === "." || name === "..") return `'${name}' in it is no name`
    if (/[\p{Cc}\\]/u.test(name)) return "it has a backslash or a control character"
    if (Buffer.byteLength(name) > maxNameBytes) return `a name in it has more than ${maxNameBytes} bytes`
    if (isWindows && (reservedNames.test(name) || reservedCharacters.test(name)))
      return "Windows does not allow a name in it"
  }
  return undefined
}

/** A key for messages: bounded, and on one line. */
export const shown = (key: string): string => {
  const text = JSON.stringify(key.slice(0, 200)).slice(1, -1)
  return `'${text.replaceAll(/[\x7f-\x9f]/g, "?")}'${key.length > 200 ? "…" : ""}`
}

/**
 * Splits a JSON array or object into the texts of its parts, so that numbers keep their digits. The JSON is not
 * validated.
 */

/** The elements of an array; undefined for anything else. */
export const elements = (text: string): ReadonlyArray<string> | undefined => {
  const inner = /^\s*\[([^]*)\]\s*$/.exec(text)?.[1]
  return inner === undefined ? undefined : split(inner, ",")
}

/** The members of an object, the first of each name; undefined for anything else. */
export const members = (text: string): ReadonlyMap<string, string> | undefined => {
  const inner = /^\s*\{([^]*)\}\s*$/.exec(text)?.[1]
  if (inner === undefined) return undefined
  const found = new Map<string, string>()
  for (const member of split(inner, ",")) {
    const [key = "", ...value] = split(member, ":")
    const name = string(key)
    if (name !== undefined && !found.has(name)) found.set(name, value.join(":"))
  }
  return found
}

/** Parses a JSON string; returns undefined for any other value. */
export const string = (text: string): string | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "string" ? value : undefined
  } catch {
    return undefined
  }
}

/** At each mark that is not inside of something. */
const split = (text: string, mark: "," | ":"): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let depth = 0
  let start = 0
  for (let index = 0; index < text.length; index++) {
    switch (text[index]) {
      case '"':
        for (index += 1; index < text.length && text[index] !== '"'; index++) if (text[index] === "\\") index += 1
        break
      case "[":
      case "{":
        depth += 1
        break
      case "]":
      case "}":
        depth -= 1
        break
      case mark:
        if (depth > 0) break
        parts.push(text.slice(start, index).trim())
        start = index + 1
    }
  }
  const last = text.slice(start).trim()
  return last === "" && parts.length === 0 ? [] : [...parts, last]
}

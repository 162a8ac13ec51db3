/** The view that the address selects, after its `#`: `#/models/digits/1/try?fill=zero`. A link keeps the whole view. */
import { signal } from "@preact/signals"

export interface Route {
  /** Decoded parts of the path; none for the first view. */
  readonly parts: ReadonlyArray<string>
  readonly query: URLSearchParams
}

const parse = (hash: string): Route => {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?")
  const parts = path.split("/").filter((part) => part !== "")
  return { parts: parts.map(decoded), query: new URLSearchParams(query) }
}

const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export const route = signal(parse(location.hash))

addEventListener("hashchange", () => (route.value = parse(location.hash)))

/** The address of a view. */
export const link = (parts: ReadonlyArray<string>, query: Readonly<Record<string, string>> = {}): string => {
  const text = new URLSearchParams(query).toString()
  return `#/${parts.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`
}

/** Changes a part of the query, without another entry in the browser's history; undefined removes it. */
export const setQuery = (name: string, value: string | undefined): void => {
  const { parts, query } = route.value
  const changed = new URLSearchParams(query)
  if (value === undefined) changed.delete(name)
  else changed.set(name, value)
  history.replaceState(null, "", link(parts, Object.fromEntries(changed)))
  route.value = parse(location.hash)
}

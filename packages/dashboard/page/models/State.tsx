/** The state of a model version, as a word with a mark; never told by colour alone. */
import type { IndexEntry } from "../api/Protocol.ts"

/** A version that is not served, with a reason, has failed. */
export const isFailed = ({ state, reason }: IndexEntry): boolean =>
  state === "UNAVAILABLE" && reason !== undefined && reason !== "" && reason !== "unloaded"

const marks = {
  ready: "●",
  failed: "✕",
  loading: "◌",
  unloading: "◌",
  unavailable: "○",
  "not loaded": "○",
  unknown: "○",
}

const wordOf = (entry: IndexEntry): keyof typeof marks => {
  if (isFailed(entry)) return "failed"
  switch (entry.state) {
    case "READY":
      return "ready"
    case "LOADING":
      return "loading"
    case "UNLOADING":
      return "unloading"
    case "UNAVAILABLE":
      return "unavailable"
    // The repository has a directory of this name.
    case undefined:
      return "not loaded"
    default:
      return "unknown"
  }
}

export const State = ({ entry }: { readonly entry: IndexEntry }) => {
  const word = wordOf(entry)
  return (
    <span class={`state ${word.replace(" ", "-")}`}>
      <span aria-hidden="true">{marks[word]}</span> {word}
    </span>
  )
}

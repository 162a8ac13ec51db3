/** JSON that folds. Only what is open is drawn, and long lists in parts. */
import { useState } from "preact/hooks"
import { isArray, type Json, write } from "../json/Json.ts"
import { clipped, visible } from "../../parts/VisibleText.ts"

export interface JsonTreeProps {
  readonly value: Json
  readonly name?: string
  readonly depth?: number
}

const step = 100

/** Depths that are open at first. */
const openDepth = 2

export const JsonTree = ({ value, name, depth = 0 }: JsonTreeProps) => {
  const [isOpen, setOpen] = useState(depth < openDepth)
  const [shown, setShown] = useState(step)
  const caption = name === undefined ? null : <span class="json-key">{visible(name)}: </span>
  if (typeof value !== "object" || value === null) {
    return (
      <div class="json-leaf">
        {caption}
        <bdi>{visible(clipped(write(value))[0])}</bdi>
      </div>
    )
  }
  const entries: ReadonlyArray<readonly [string, Json | undefined]> = isArray(value)
    ? value.map((item, index) => [String(index), item] as const)
    : Object.entries(value)
  const size = isArray(value) ? `[${entries.length}]` : `{${entries.length}}`
  return (
    <details class="json" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {caption}
        <span class="quiet">{size}</span>
      </summary>
      {isOpen &&
        entries
          .slice(0, shown)
          .map(([key, item]) => <JsonTree key={key} name={key} value={item ?? null} depth={depth + 1} />)}
      {isOpen && entries.length > shown && (
        <button type="button" class="plain" onClick={() => setShown(shown + step)}>
          Show more of {entries.length}
        </button>
      )}
    </details>
  )
}

/** Selects the model and the time that the view shows, and pauses it. The address keeps all of them. */
import type { LiveStep } from "../../src/live/LiveStep.ts"
import { setQuery } from "../app/route.ts"
import { PauseButton } from "../parts/Pause.tsx"
import { activeModels, type Subject } from "./Series.ts"
import { models } from "./stream.ts"
import { visible } from "../parts/VisibleText.ts"

export interface ToolbarProps {
  readonly steps: ReadonlyArray<LiveStep>
  readonly subject: Subject | undefined
  readonly seconds: number
}

const windows = [
  [30, "30 seconds"],
  [120, "2 minutes"],
  [300, "5 minutes"],
  [600, "10 minutes"],
] as const

const keyOf = ({ name, version }: Subject): string => `${name}/${version}`

export const Toolbar = ({ steps, subject, seconds }: ToolbarProps) => {
  // Busy models first, then those without requests.
  const subjects = new Map(activeModels(steps).map((other) => [keyOf(other), other]))
  for (const model of models.value) if (model.running !== undefined) subjects.set(keyOf(model), model)
  if (subject !== undefined) subjects.set(keyOf(subject), subject)
  return (
    <div class="bar">
      <label>
        Model{" "}
        <select
          value={subject === undefined ? "" : keyOf(subject)}
          onChange={(event) => setQuery("model", event.currentTarget.value || undefined)}
        >
          <option value="">all models</option>
          {[...subjects].map(([key, { name, version }]) => (
            <option key={key} value={key}>
              {visible(name)}, version {version}
            </option>
          ))}
        </select>
      </label>
      <label>
        Time{" "}
        <select value={String(seconds)} onChange={(event) => setQuery("seconds", event.currentTarget.value)}>
          {windows.map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <PauseButton />
    </div>
  )
}

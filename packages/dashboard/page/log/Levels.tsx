/** The levels that the server writes: a setting of the server, for its log as a whole and for everybody. */
import { useEffect, useState } from "preact/hooks"
import { json, post } from "../api/http.ts"
import { Problem } from "../parts/Problem.tsx"
import { useTask } from "../parts/useTask.ts"

interface Settings {
  readonly log_info: boolean
  readonly log_warning: boolean
  readonly log_error: boolean
  readonly log_verbose_level: number
}

const switches = [
  ["log_info", "information"],
  ["log_warning", "warnings"],
  ["log_error", "errors"],
] as const

export const Levels = () => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Levels that the server writes</summary>
      {isOpen && <Settings />}
    </details>
  )
}

const Settings = () => {
  const [settings, setSettings] = useState<Settings>()
  const { problem, run } = useTask()
  useEffect(() => run(async () => setSettings(await json<Settings>("/v2/logging"))), [])
  const change = (changed: Partial<Settings>) =>
    run(async () => {
      const response = await post("/v2/logging", changed)
      setSettings(await response.json())
    })
  if (problem !== undefined) return <Problem title="The levels are not available." refusal={problem} />
  if (settings === undefined) return <p aria-busy="true">Reading the levels…</p>
  return (
    <fieldset class="bar">
      <legend>They apply to the whole server.</legend>
      {switches.map(([name, title]) => (
        <label key={name} class="check">
          <input
            type="checkbox"
            checked={settings[name]}
            onChange={(event) => change({ [name]: event.currentTarget.checked })}
          />
          {title}
        </label>
      ))}
      <label>
        Verbosity{" "}
        <input
          type="number"
          min={0}
          max={9}
          value={settings.log_verbose_level}
          onChange={(event) => change({ log_verbose_level: Number(event.currentTarget.value) })}
        />
      </label>
    </fieldset>
  )
}

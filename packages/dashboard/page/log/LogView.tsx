/** The last lines of the server's log, with a filter and the levels that the server writes. */
import { useEffect, useState } from "preact/hooks"
import type { LogLevel, LogLine } from "../../src/live/LogMessage.ts"
import { askAgain } from "../api/secrets.ts"
import { route, setQuery } from "../app/route.ts"
import { clock } from "../live/Numbers.ts"
import { Problem } from "../parts/Problem.tsx"
import { Levels } from "./Levels.tsx"
import { lines, openLog, problem } from "./stream.ts"

const levels: ReadonlyArray<LogLevel> = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]

export const LogView = () => {
  useEffect(() => openLog(), [])
  const { query } = route.value
  const filter = query.get("filter") ?? ""
  const lowest = levels.indexOf(levels.find((level) => level === query.get("level")) ?? "TRACE")
  const [isPaused, setPaused] = useState(false)
  const [kept, setKept] = useState(lines.value)
  useEffect(() => {
    if (!isPaused) setKept(lines.value)
  }, [isPaused, lines.value])
  const shown = kept.filter((line) => levels.indexOf(line.level) >= lowest && matches(line, filter))
  const refusal = problem.value
  return (
    <>
      <h1>Log</h1>
      {refusal !== undefined && (
        <>
          <Problem title="The server gives this page no log." refusal={refusal} />
          <button
            type="button"
            onClick={() => {
              askAgain()
              openLog()
            }}
          >
            Try again
          </button>
        </>
      )}
      <div class="bar">
        <label>
          Filter{" "}
          <input
            type="search"
            value={filter}
            onInput={(event) => setQuery("filter", event.currentTarget.value || undefined)}
          />
        </label>
        <label>
          Show{" "}
          <select value={levels[lowest] ?? "TRACE"} onChange={(event) => setQuery("level", event.currentTarget.value)}>
            {levels.map((level) => (
              <option key={level} value={level}>
                {level} and above
              </option>
            ))}
          </select>
        </label>
        <button type="button" class="plain" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Continue" : "Pause"}
        </button>
      </div>
      <Levels />
      <ol class="log" tabIndex={0} aria-label="Lines of the log, the newest first">
        {shown.toReversed().map((line) => (
          <Line key={line.index} line={line} />
        ))}
      </ol>
      {shown.length === 0 && <p class="quiet">No lines.</p>}
    </>
  )
}

const matches = ({ text, model = "", requestId = "" }: LogLine, filter: string): boolean =>
  `${text} ${model} ${requestId}`.toLowerCase().includes(filter.trim().toLowerCase())

const Line = ({ line: { time, level, text, model, requestId, annotations } }: { readonly line: LogLine }) => (
  <li class={level.toLowerCase()}>
    <span class="quiet">{clock(time)}</span> <strong>{level}</strong>{" "}
    {model !== undefined && <span class="tag">{model}</span>}
    {requestId !== undefined && <span class="tag">request {requestId}</span>} <span class="text">{text}</span>
    {annotations !== undefined && <span class="quiet"> {JSON.stringify(annotations)}</span>}
  </li>
)

/** The last lines of the server's log, with a filter and the levels that the server writes. */
import { useEffect } from "preact/hooks"
import type { LogLevel, LogLine } from "../../src/live/LogMessage.ts"
import { route, setQuery } from "../app/route.ts"
import { clock } from "../live/Numbers.ts"
import { PauseButton, usePaused } from "../parts/Pause.tsx"
import { StreamProblem } from "../parts/StreamProblem.tsx"
import { Levels } from "./Levels.tsx"
import { lines, stream } from "./stream.ts"
import { ModelText } from "../parts/ModelText.tsx"
import { visible } from "../parts/VisibleText.ts"

const levels: ReadonlyArray<LogLevel> = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]

export const LogView = () => {
  useEffect(() => stream.open(), [])
  const { query } = route.value
  const filter = query.get("filter") ?? ""
  const lowest = levels.indexOf(levels.find((level) => level === query.get("level")) ?? "TRACE")
  const kept = usePaused(lines.value, stream.isFlowing.value)
  const shown = kept.filter((line) => levels.indexOf(line.level) >= lowest && matches(line, filter))
  return (
    <>
      <h1>Log</h1>
      <StreamProblem title="The server gives this page no log." stream={stream} />
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
        <PauseButton />
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
    {model !== undefined && (
      <span class="tag">
        <ModelText text={model} />
      </span>
    )}
    {requestId !== undefined && (
      <span class="tag">
        request <ModelText text={requestId} />
      </span>
    )}{" "}
    <span class="text">{visible(text)}</span>
    {Object.entries(annotations ?? {}).map(([name, value]) => (
      <span key={name} class="quiet">
        {" "}
        {visible(`${name}=${String(value)}`)}
      </span>
    ))}
  </li>
)

/** The load of the server, now and in the last minutes: of all models, or of one. */
import { useEffect } from "preact/hooks"
import { route } from "../app/route.ts"
import { usePaused } from "../parts/Pause.tsx"
import { StreamProblem } from "../parts/StreamProblem.tsx"
import { AdviceList } from "./AdviceList.tsx"
import { Charts } from "./Charts.tsx"
import { ModelLoads } from "./ModelLoads.tsx"
import { ProcessCharts } from "./ProcessCharts.tsx"
import { type Subject, window } from "./Series.ts"
import { SlowRequests } from "./SlowRequests.tsx"
import { advice, server, slow, steps, stream } from "./stream.ts"
import { Toolbar } from "./Toolbar.tsx"
import { WindowSums } from "./WindowSums.tsx"

export const LiveView = () => {
  useEffect(() => stream.open(), [])
  const { query } = route.value
  const seconds = Number(query.get("seconds") ?? 120)
  const hasData = server.value !== undefined
  const current = { steps: steps.value, advice: advice.value, slow: slow.value }
  const { steps: all, ...others } = usePaused(current, hasData)
  const shown = window(all, Number.isFinite(seconds) ? seconds : 120)
  const subject = subjectOf(query.get("model"))
  return (
    <>
      <h1>Live</h1>
      <StreamProblem title="The server gives this page no live data." stream={stream} />
      {!hasData && stream.problem.value === undefined && <p aria-busy="true">Waiting for live data…</p>}
      {hasData && (
        <>
          <Toolbar steps={all} subject={subject} seconds={seconds} />
          <AdviceList advice={others.advice} subject={subject} />
          <WindowSums steps={shown} subject={subject} />
          <Charts steps={shown} subject={subject} seconds={seconds} />
          {subject === undefined && <ModelLoads steps={shown} />}
          {subject === undefined && <ProcessCharts steps={shown} seconds={seconds} />}
          <SlowRequests slow={others.slow} subject={subject} />
        </>
      )}
    </>
  )
}

/** A version in the query: `digits/1`. Names contain no slash, versions neither. */
const subjectOf = (text: string | null): Subject | undefined => {
  const [name, version = ""] = text?.split("/") ?? []
  return name === undefined || name === "" ? undefined : { name, version }
}

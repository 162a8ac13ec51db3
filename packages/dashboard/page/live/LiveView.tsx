/** The load of the server, now and in the last minutes: of all models, or of one. */
import { useEffect, useState } from "preact/hooks"
import { askAgain } from "../api/secrets.ts"
import { route } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { AdviceList } from "./AdviceList.tsx"
import { Charts } from "./Charts.tsx"
import { ModelLoads } from "./ModelLoads.tsx"
import { ProcessCharts } from "./ProcessCharts.tsx"
import { type Subject, window } from "./Series.ts"
import { SlowRequests } from "./SlowRequests.tsx"
import { advice, openLive, problem, server, slow, steps } from "./stream.ts"
import { Toolbar } from "./Toolbar.tsx"
import { WindowSums } from "./WindowSums.tsx"

export const LiveView = () => {
  useEffect(() => openLive(), [])
  const { query } = route.value
  const seconds = Number(query.get("seconds") ?? 120)
  const isPaused = query.get("paused") === "true"
  const all = usePaused(steps.value, isPaused)
  const shown = window(all, Number.isFinite(seconds) ? seconds : 120)
  const subject = subjectOf(query.get("model"))
  const refusal = problem.value
  return (
    <>
      <h1>Live</h1>
      {refusal !== undefined && <Refused />}
      {server.value === undefined && refusal === undefined && <p aria-busy="true">Waiting for live data…</p>}
      {server.value !== undefined && (
        <>
          <Toolbar steps={all} subject={subject} seconds={seconds} isPaused={isPaused} />
          <AdviceList advice={advice.value} subject={subject} />
          <WindowSums steps={shown} subject={subject} />
          <Charts steps={shown} subject={subject} seconds={seconds} />
          {subject === undefined && <ModelLoads steps={shown} />}
          {subject === undefined && <ProcessCharts steps={shown} seconds={seconds} />}
          <SlowRequests slow={slow.value} subject={subject} />
        </>
      )}
    </>
  )
}

const Refused = () => {
  const refusal = problem.value
  if (refusal === undefined) return null
  return (
    <>
      <Problem title="The server gives this page no live data." refusal={refusal} />
      <button
        type="button"
        onClick={() => {
          askAgain()
          openLive()
        }}
      >
        Try again
      </button>
    </>
  )
}

/** A version in the query: `digits/1`. Names contain no slash, versions neither. */
const subjectOf = (text: string | null): Subject | undefined => {
  const [name, version = ""] = text?.split("/") ?? []
  return name === undefined || name === "" ? undefined : { name, version }
}

/** The value of the moment at which the view was paused. */
const usePaused = <A,>(value: A, isPaused: boolean): A => {
  const [kept, setKept] = useState(value)
  useEffect(() => {
    if (!isPaused) setKept(value)
  }, [value, isPaused])
  return isPaused ? kept : value
}

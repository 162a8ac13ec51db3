/** Tells when the server does not answer, and when it is back. The page keeps what it shows, and reads it again. */
import { useEffect } from "preact/hooks"
import { indexProblem, refresh } from "../api/models.ts"
import { stream } from "../live/stream.ts"

/** Time between two reads of the index without live data, in milliseconds. Live data tells of changes at once. */
const interval = 3_000

export const Connection = () => {
  // A page without live data works, too.
  useEffect(() => stream.open(true), [])
  const isFlowing = stream.isFlowing.value
  useEffect(() => {
    if (isFlowing) return
    void refresh()
    const timer = setInterval(() => {
      if (!document.hidden) void refresh()
    }, interval)
    return () => clearInterval(timer)
  }, [isFlowing])
  const isAway = indexProblem.value?.status === 0
  return (
    <p class={isAway ? "connection away" : "connection"} role="status">
      {isAway ? "The server does not answer. Trying again…" : ""}
    </p>
  )
}

/** Tells when the server does not answer, and when it is back. The page keeps what it shows, and reads it again. */
import { useEffect } from "preact/hooks"
import { indexProblem, refresh } from "../api/models.ts"
import { openLive } from "../live/stream.ts"

/** Time between two reads of the index, in milliseconds. Live data tells of changes at once; this is for the rest. */
const interval = 3_000

export const Connection = () => {
  useEffect(() => {
    void refresh()
    // Tells of changes at once. A page without live data works, too.
    openLive(true)
    const timer = setInterval(() => {
      if (!document.hidden) void refresh()
    }, interval)
    return () => clearInterval(timer)
  }, [])
  const isAway = indexProblem.value?.status === 0
  return (
    <p class={isAway ? "connection away" : "connection"} role="status">
      {isAway ? "The server does not answer. Trying again…" : ""}
    </p>
  )
}

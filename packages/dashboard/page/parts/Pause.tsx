/** Pauses a view that shows a stream. The address keeps the pause, so a link to a paused view opens it paused. */
import { useRef } from "preact/hooks"
import { route, setQuery } from "../app/route.ts"

const isPaused = (): boolean => route.value.query.get("paused") === "true"

/** The current value; that of the moment of the pause while the view is paused. Without data, there is no pause. */
export const usePaused = <A,>(current: A, hasData: boolean): A => {
  const shown = useRef({ value: current, hasData })
  if (!isPaused() || !shown.current.hasData) shown.current = { value: current, hasData }
  return shown.current.value
}

export const PauseButton = () => (
  <button
    type="button"
    class="plain"
    aria-pressed={isPaused()}
    onClick={() => setQuery("paused", isPaused() ? undefined : "true")}
  >
    {isPaused() ? "Continue" : "Pause"}
  </button>
)

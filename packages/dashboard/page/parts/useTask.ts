/** An action of the user that takes time: whether it runs, and how it failed. */
import { useCallback, useState } from "preact/hooks"
import { Refusal } from "../api/Refusal.ts"

export interface Task {
  readonly isRunning: boolean
  readonly problem: Refusal | undefined
  /** Starts the action; does nothing while one runs. */
  readonly run: (action: () => Promise<void>) => void
}

export const useTask = (): Task => {
  const [isRunning, setRunning] = useState(false)
  const [problem, setProblem] = useState<Refusal>()
  const run = useCallback(
    (action: () => Promise<void>) => {
      if (isRunning) return
      setRunning(true)
      setProblem(undefined)
      action()
        .catch((error: unknown) => setProblem(Refusal.of(error)))
        .finally(() => setRunning(false))
    },
    [isRunning],
  )
  return { isRunning, problem, run }
}

/** The reason why the server refuses a stream. */
import { isFinal, type Messages } from "../api/events.ts"
import { askAgain } from "../api/secrets.ts"
import { Problem } from "./Problem.tsx"

export interface StreamProblemProps {
  readonly title: string
  readonly stream: Messages
}

export const StreamProblem = ({ title, stream: { problem, open } }: StreamProblemProps) => {
  const refusal = problem.value
  if (refusal === undefined) return null
  return (
    <>
      <Problem title={title} refusal={refusal} />
      {isFinal(refusal) ? (
        <button
          type="button"
          onClick={() => {
            askAgain()
            open()
          }}
        >
          Try again
        </button>
      ) : (
        <p class="quiet">Trying again…</p>
      )}
    </>
  )
}

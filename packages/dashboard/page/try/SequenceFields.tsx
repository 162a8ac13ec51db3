/** The sequence of the form's requests: its id, what it has, and its end. */
import type { Sequences } from "../api/Model.ts"
import type { Session } from "./call/Session.ts"

export interface SequenceFieldsProps {
  readonly sequences: Sequences
  readonly session: Session
  readonly onId: (id: string) => void
  /** Sentence about the sequence before; empty without one. */
  readonly note: string
  readonly isRunning: boolean
  /** Ends the sequence without a request. */
  readonly onLeave: () => void
}

export const SequenceFields = ({ sequences, session, onId, note, isRunning, onLeave }: SequenceFieldsProps) => {
  const isOpen = session.answered > 0
  return (
    <fieldset class="sequence">
      <legend>Sequence</legend>
      <div class="row">
        <label class="short">
          Sequence id
          <input
            value={session.id}
            readOnly={isOpen}
            spellcheck={false}
            onInput={(event) => onId(event.currentTarget.value)}
          />
        </label>
        <button type="button" class="plain" disabled={!isOpen || isRunning} onClick={onLeave}>
          End the sequence
        </button>
      </div>
      <p class="quiet" role="status">
        {note !== "" && `${note} `}
        {isOpen ? opened(session, sequences) : "The next request starts the sequence."}
      </p>
    </fieldset>
  )
}

const opened = ({ answered }: Session, { maxIdle }: Sequences): string => {
  const requests = `The sequence has had ${answered} ${answered === 1 ? "request" : "requests"}.`
  return maxIdle === undefined
    ? `${requests} It never expires.`
    : `${requests} It expires after ${maxIdle} ${maxIdle === 1 ? "second" : "seconds"} without one.`
}

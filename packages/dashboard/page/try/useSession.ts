/** The sequence of a form as a hook: follows the answers to its requests, and ends the sequence on the server. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { Model } from "../api/Model.ts"
import type { Refusal } from "../api/Refusal.ts"
import type { SequenceStep } from "./call/Attempt.ts"
import { leave as leaveSequence } from "./call/call.ts"
import * as Session from "./call/Session.ts"
import { attempt as attempted, Invalid } from "./Invalid.ts"

/** The session, and what changes it. A sequence that is still open ends with the form. */
export const useSession = (model: Model) => {
  const { sequences } = model
  const [session, setSession] = useState(Session.begin)
  const [note, setNote] = useState("")
  const current = useRef(session)
  current.current = session
  const leave = async () => {
    const { answered } = current.current
    if (sequences === undefined || answered === 0) return
    const step = attempted(() => Session.stepOf(current.current, sequences, true))
    if (!(step instanceof Invalid)) await leaveSequence(model, step)
  }
  useEffect(() => {
    const onHide = () => void leave().catch(() => {})
    addEventListener("pagehide", onHide)
    return () => {
      removeEventListener("pagehide", onHide)
      onHide()
    }
  }, [])
  return {
    session,
    note,
    settle: (step: SequenceStep) => {
      setNote(step.isEnd ? ended(current.current.answered + 1) : "")
      setSession(Session.afterAnswer(current.current, step))
    },
    fail: (problem: Refusal) => {
      const next = Session.afterFailure(current.current, problem)
      setNote(next === current.current ? "" : "The server does not have the sequence.")
      setSession(next)
    },
    setId: (id: string) => setSession({ ...current.current, id }),
    leave: () => {
      // A server that does not answer, or does not know such an end, lets it expire.
      void leave().catch(() => {})
      setNote(ended(current.current.answered))
      setSession(Session.begin())
    },
  }
}

const ended = (requests: number): string =>
  `The sequence before had ${requests} ${requests === 1 ? "request" : "requests"}, and has ended.`

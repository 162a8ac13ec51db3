/** A form for requests to a model, made of its contract, and its answers. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import type { Field, Model } from "../api/Model.ts"
import { Refusal } from "../api/Refusal.ts"
import { AnswerView } from "./answer/AnswerView.tsx"
import { maxEvents, StreamView } from "./answer/StreamView.tsx"
import { TimingView } from "./answer/TimingView.tsx"
import type { Attempt, Input } from "./call/Attempt.ts"
import { type Event, infer, stream, type Timed } from "./call/call.ts"
import { fieldWithoutJson } from "./call/GenerateRequest.ts"
import type { Answer } from "./call/Output.ts"
import * as Session from "./call/Session.ts"
import { CopyAs } from "./CopyAs.tsx"
import { FailureView } from "./FailureView.tsx"
import type { Entry } from "./fields/Entry.ts"
import type { Extents } from "./fields/Extents.ts"
import { InputField } from "./fields/InputField.tsx"
import { attempt as attempted, Invalid } from "./Invalid.ts"
import { initialOptions, MoreOptions, optionsOf } from "./MoreOptions.tsx"
import { DeclaredParameters, initialParameters, parametersOf } from "./ParameterFields.tsx"
import { Repeat } from "./repeat/Repeat.tsx"
import { SequenceFields } from "./SequenceFields.tsx"
import { useSession } from "./useSession.ts"
import "./try.css"

/** Time between two drawings of a stream, in milliseconds. */
const drawInterval = 50

interface Outcome {
  readonly answer?: Answer
  readonly events?: ReadonlyArray<Event>
  readonly count?: number
  readonly timed?: Timed
  readonly problem?: Refusal
}

/** A form of another contract starts anew; a model that is loaded again with the same one keeps its form. */
export const Try = ({ model }: { readonly model: Model }) => {
  const { inputs, outputs, parameters, decoupled, maxBatchSize, sequences } = model
  const field = decoupled ? fieldWithoutJson(model) : undefined
  if (field !== undefined) return <NoStream field={field} />
  return <Form key={JSON.stringify([inputs, outputs, parameters, decoupled, maxBatchSize, sequences])} model={model} />
}

const NoStream = ({ field: { name, datatype } }: { readonly field: Field }) => (
  <p>
    This page cannot call the model. The model streams its responses, a stream over HTTP has its tensors as JSON, and
    JSON has no form for the {datatype} of <code>{name}</code>. Clients call it over gRPC.
  </p>
)

const Form = ({ model }: { readonly model: Model }) => {
  const [entries, setEntries] = useState<Readonly<Record<string, Entry | undefined>>>({})
  const [extents, setExtents] = useState<Readonly<Record<string, number>>>({})
  const [parameters, setParameters] = useState(() => initialParameters(model))
  const [options, setOptions] = useState(initialOptions)
  const [outcome, setOutcome] = useState<Outcome>()
  const [refused, setRefused] = useState("")
  const [isRunning, setRunning] = useState(false)
  const controller = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => controller.current?.abort(), [])

  const { sequences } = model
  const { session, note, settle, fail, setId, leave } = useSession(model)
  const attempt = useMemo(
    () =>
      attempted((): Attempt => ({
        model,
        inputs: inputsOf(model, entries),
        ...optionsOf(options, parametersOf(model, parameters)),
        ...(sequences && { sequence: Session.stepOf(session, sequences, false) }),
      })),
    [model, entries, parameters, options, sequences, session],
  )
  // Requests that are repeated are sequences of their own.
  const otherId = useMemo(Session.madeId, [])
  const repeated = useMemo(
    () =>
      attempt instanceof Invalid || sequences === undefined
        ? attempt
        : { ...attempt, sequence: Session.wholeStep(otherId, sequences) },
    [attempt, sequences, otherId],
  )
  const shared: Extents = {
    get: (key, fallback) => extents[key] ?? fallback,
    set: (key, extent) => setExtents((all) => ({ ...all, [key]: extent })),
  }
  const submit = async (isEnd: boolean) => {
    if (attempt instanceof Invalid) return setRefused(`The request cannot be sent. ${attempt.message}.`)
    const sequence = attempt.sequence && { ...attempt.sequence, isEnd }
    const abort = new AbortController()
    controller.current = abort
    setRefused("")
    setRunning(true)
    setOutcome(undefined)
    try {
      const problem = await send({ ...attempt, sequence }, abort.signal, setOutcome)
      if (problem !== undefined) fail(problem)
      else if (sequence !== undefined) settle(sequence)
    } catch (error) {
      if (error instanceof Invalid) setRefused(`The request cannot be sent. ${error.message}.`)
      else {
        // The responses before the error stay.
        const problem = abort.signal.aborted ? new Refusal("You have stopped the request.", 0) : Refusal.of(error)
        setOutcome((before) => ({ ...before, problem }))
        fail(problem)
      }
    } finally {
      setRunning(false)
    }
  }
  return (
    <div class="try">
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          if (!isRunning) void submit(false)
        }}
      >
        {model.inputs.map((field) => (
          <InputField
            key={field.name}
            field={field}
            extents={shared}
            onEntry={(entry) => setEntries((all) => ({ ...all, [field.name]: entry }))}
          />
        ))}
        <DeclaredParameters model={model} value={parameters} onValue={setParameters} />
        <MoreOptions options={options} onOptions={setOptions} parameters={parameters} onParameters={setParameters} />
        {sequences !== undefined && (
          <SequenceFields
            sequences={sequences}
            session={session}
            onId={setId}
            note={note}
            isRunning={isRunning}
            onLeave={leave}
          />
        )}
        <p class="buttons">
          <button type="submit" disabled={isRunning}>
            {isRunning ? "Running…" : "Run"}
          </button>
          {sequences !== undefined && (
            <button type="button" disabled={isRunning} onClick={() => void submit(true)}>
              Run as the last request
            </button>
          )}
          <button type="button" class="plain" disabled={!isRunning} onClick={() => controller.current?.abort()}>
            Stop
          </button>
        </p>
        <p class="field-problem" role="alert">
          {refused}
        </p>
      </form>
      <div class="answer" aria-busy={isRunning || undefined}>
        {outcome !== undefined && <OutcomeView outcome={outcome} isRunning={isRunning} />}
      </div>
      <CopyAs attempt={attempt} />
      <Repeat attempt={repeated} />
    </div>
  )
}

/** @throws Invalid for the first input that cannot be sent */
const inputsOf = (model: Model, entries: Readonly<Record<string, Entry | undefined>>): ReadonlyArray<Input> =>
  model.inputs.flatMap((field): ReadonlyArray<Input> => {
    const entry = entries[field.name]
    if (entry instanceof Invalid) throw new Invalid(`${field.name}: ${entry.message}`)
    if (entry !== undefined) return [{ field, ...entry }]
    if (!field.optional) throw new Invalid(`${field.name} is missing`)
    return []
  })

/** The result is the error that a stream has ended with. */
const send = async (
  attempt: Attempt,
  signal: AbortSignal,
  onOutcome: (outcome: Outcome) => void,
): Promise<Refusal | undefined> => {
  if (!attempt.model.decoupled) {
    const { answer, ...timed } = await infer(attempt, signal)
    onOutcome({ answer, timed })
    return undefined
  }
  const events: Array<Event> = []
  let count = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const draw = () => {
    timer = undefined
    onOutcome({ events: events.slice(), count })
  }
  try {
    const { problem, ...timed } = await stream(attempt, signal, (event) => {
      count += 1
      if (events.push(event) > maxEvents) events.shift()
      timer ??= setTimeout(draw, count === 1 ? 0 : drawInterval)
    })
    onOutcome({ events, count, timed, ...(problem && { problem }) })
    return problem
  } catch (error) {
    if (count > 0) draw()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

const OutcomeView = ({ outcome, isRunning }: { readonly outcome: Outcome; readonly isRunning: boolean }) => {
  const { answer, events, count = 0, timed, problem } = outcome
  return (
    <>
      <h3>Answer</h3>
      {timed !== undefined && <TimingView timed={timed} />}
      {answer !== undefined && <AnswerView answer={answer} />}
      {events !== undefined && (
        <>
          <p class="quiet">
            {count} {count === 1 ? "response" : "responses"}
            {isRunning && " so far"}
          </p>
          <StreamView events={events} count={count} />
        </>
      )}
      {problem !== undefined && <FailureView title="The request failed." refusal={problem} />}
      <p class="visually-hidden" role="status">
        {!isRunning && problem === undefined ? "The model has answered." : ""}
      </p>
    </>
  )
}

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
import { CopyAs } from "./CopyAs.tsx"
import { FailureView } from "./FailureView.tsx"
import type { Entry } from "./fields/Entry.ts"
import type { Extents } from "./fields/Extents.ts"
import { InputField } from "./fields/InputField.tsx"
import { attempt as attempted, Invalid } from "./Invalid.ts"
import { initialOptions, MoreOptions, optionsOf } from "./MoreOptions.tsx"
import { DeclaredParameters, initialParameters, parametersOf } from "./ParameterFields.tsx"
import { Repeat } from "./repeat/Repeat.tsx"
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
  const { inputs, outputs, parameters, decoupled, maxBatchSize } = model
  const field = decoupled ? fieldWithoutJson(model) : undefined
  if (field !== undefined) return <NoStream field={field} />
  return <Form key={JSON.stringify([inputs, outputs, parameters, decoupled, maxBatchSize])} model={model} />
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

  const attempt = useMemo(
    () =>
      attempted((): Attempt => ({
        model,
        inputs: inputsOf(model, entries),
        ...optionsOf(options, parametersOf(model, parameters)),
      })),
    [model, entries, parameters, options],
  )
  const shared: Extents = {
    get: (key, fallback) => extents[key] ?? fallback,
    set: (key, extent) => setExtents((all) => ({ ...all, [key]: extent })),
  }
  const submit = async () => {
    if (attempt instanceof Invalid) return setRefused(`The request cannot be sent. ${attempt.message}.`)
    const abort = new AbortController()
    controller.current = abort
    setRefused("")
    setRunning(true)
    setOutcome(undefined)
    try {
      await send(attempt, abort.signal, setOutcome)
    } catch (error) {
      if (error instanceof Invalid) setRefused(`The request cannot be sent. ${error.message}.`)
      else {
        // The responses before the error stay.
        const problem = abort.signal.aborted ? new Refusal("You have stopped the request.", 0) : Refusal.of(error)
        setOutcome((before) => ({ ...before, problem }))
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
          if (!isRunning) void submit()
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
        <p class="buttons">
          <button type="submit" disabled={isRunning}>
            {isRunning ? "Running…" : "Run"}
          </button>
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
      <Repeat attempt={attempt} />
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

const send = async (attempt: Attempt, signal: AbortSignal, onOutcome: (outcome: Outcome) => void): Promise<void> => {
  if (!attempt.model.decoupled) {
    const { answer, ...timed } = await infer(attempt, signal)
    return onOutcome({ answer, timed })
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

/** The responses of a stream: texts one behind the other with the time that each took, others one at a time. */
import { useState } from "preact/hooks"
import { duration } from "../../live/Numbers.ts"
import type { Event } from "../call/call.ts"
import { isList, textOf } from "../tensor/Tensor.ts"
import { AnswerView } from "./AnswerView.tsx"
import { visible } from "../../parts/VisibleText.ts"

export interface StreamViewProps {
  /** The last of all. */
  readonly events: ReadonlyArray<Event>
  /** Number of all. */
  readonly count: number
}

/** Responses that the page keeps of a stream. */
export const maxEvents = 1_000

export const StreamView = ({ events, count }: StreamViewProps) => {
  const texts = events.map(({ answer }) => tokenOf(answer))
  const first = count - events.length
  if (!texts.every((text) => text !== undefined)) return <Responses events={events} first={first} />
  return (
    <>
      {first > 0 && <p class="quiet">The first {first} are not shown.</p>}
      <div role="log" aria-label="Responses">
        <ol class="tokens">
          {events.map(({ at }, index) => {
            const before = events[index - 1]?.at ?? (first === 0 ? 0 : at)
            return (
              <li key={first + index}>
                <bdi>{visible(texts[index] ?? "")}</bdi>
                <small class="quiet">{duration(at - before)}</small>
              </li>
            )
          })}
        </ol>
      </div>
    </>
  )
}

/** The text of a response that is nothing else. */
const tokenOf = ({ outputs, parameters }: Event["answer"]): string | undefined => {
  const [output] = outputs
  if (outputs.length !== 1 || output === undefined || Object.keys(parameters).length > 0) return undefined
  const { data } = output.tensor
  return isList(data) && data.length === 1 && data[0] !== undefined ? textOf(data[0]) : undefined
}

const Responses = ({ events, first }: { readonly events: ReadonlyArray<Event>; readonly first: number }) => {
  /** Undefined follows the stream. */
  const [selected, setSelected] = useState<number>()
  const position = Math.min(selected ?? Infinity, events.length - 1)
  const event = events[position]
  if (event === undefined) return null
  return (
    <>
      <label>
        Response {first + position + 1}, after {duration(event.at)}
        <input
          type="range"
          min={0}
          max={events.length - 1}
          value={position}
          onInput={(input) => {
            const index = input.currentTarget.valueAsNumber
            setSelected(index === events.length - 1 ? undefined : index)
          }}
        />
      </label>
      <AnswerView answer={event.answer} />
    </>
  )
}

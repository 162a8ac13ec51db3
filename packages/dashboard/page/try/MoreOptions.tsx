/** Options that few requests need: the id, time and priority in the queue, and free parameters. */
import { useState } from "preact/hooks"
import type { Attempt, ParameterValue } from "./call/Attempt.ts"
import { Invalid } from "./Invalid.ts"
import { FreeParameters, type ParameterDraft } from "./ParameterFields.tsx"

/** As texts of the form; empty for none. */
export interface Options {
  readonly id: string
  /** Milliseconds. */
  readonly timeout: string
  readonly priority: string
}

export const initialOptions: Options = { id: "", timeout: "", priority: "" }

/** @throws Invalid for an option that cannot be sent */
export const optionsOf = (
  { id, timeout, priority }: Options,
  parameters: Readonly<Record<string, ParameterValue>>,
): Pick<Attempt, "id" | "parameters"> => ({
  id,
  parameters: {
    ...parameters,
    ...(timeout.trim() !== "" && { timeout: positive("the time in the queue", timeout, 1_000) }),
    ...(priority.trim() !== "" && { priority: positive("the priority", priority, 1) }),
  },
})

const positive = (name: string, text: string, factor: number): number => {
  const value = Math.round(Number(text) * factor)
  if (!Number.isSafeInteger(value) || value < 1) throw new Invalid(`${name} must be a positive number`)
  return value
}

export interface MoreOptionsProps {
  readonly options: Options
  readonly onOptions: (options: Options) => void
  readonly parameters: ParameterDraft
  readonly onParameters: (parameters: ParameterDraft) => void
}

export const MoreOptions = ({ options, onOptions, parameters, onParameters }: MoreOptionsProps) => {
  const [isOpen, setOpen] = useState(false)
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>More</summary>
      <div class="row">
        <label class="short">
          Request id
          <input value={options.id} onInput={(event) => onOptions({ ...options, id: event.currentTarget.value })} />
        </label>
        <label class="short">
          Time in the queue, in ms
          <input
            inputMode="decimal"
            value={options.timeout}
            onInput={(event) => onOptions({ ...options, timeout: event.currentTarget.value })}
          />
        </label>
        <label class="short">
          Priority
          <input
            inputMode="numeric"
            value={options.priority}
            onInput={(event) => onOptions({ ...options, priority: event.currentTarget.value })}
          />
        </label>
      </div>
      <FreeParameters value={parameters} onValue={onParameters} />
    </details>
  )
}

/** Parameters of a request: those that the model declares, by their schemas, and free ones. */
import { useState } from "preact/hooks"
import type { Model } from "../api/Model.ts"
import type { ParameterValue } from "./call/Attempt.ts"
import { MemberEditor } from "./fields/JsonEditor.tsx"
import { Invalid } from "./Invalid.ts"
import { type Draft, jsonOf, NotJson } from "./json/Draft.ts"
import { formOf, initial } from "./json/JsonForm.ts"

export interface FreeParameter {
  readonly name: string
  readonly kind: "text" | "number" | "boolean"
  readonly value: string
}

export interface ParameterDraft {
  readonly declared: Readonly<Record<string, Draft | undefined>>
  readonly free: ReadonlyArray<FreeParameter>
}

export const initialParameters = ({ parameters }: Model): ParameterDraft => ({
  declared: Object.fromEntries(
    parameters
      .filter(({ optional }) => optional !== true)
      .map(({ name, schema, default: preset }) => [name, preset ?? initial(schema, schema)]),
  ),
  free: [],
})

/** @throws Invalid for a parameter that cannot be sent */
export const parametersOf = (
  { parameters }: Model,
  { declared, free }: ParameterDraft,
): Readonly<Record<string, ParameterValue>> => {
  const values = parameters.flatMap(({ name, schema }): ReadonlyArray<readonly [string, ParameterValue]> => {
    const draft = declared[name]
    if (draft === undefined) return []
    const value = jsonOf(draft)
    if (value instanceof NotJson) throw new Invalid(`parameter ${name}: ${value.problem}`)
    if (value === null || typeof value === "object") throw new Invalid(`parameter ${name} must be one value`)
    // A schema has integers of 64 bits as strings of digits, and requests have them as integers.
    const isDigits = typeof value === "string" && formOf(schema, schema).kind === "digits"
    return [[name, isDigits ? BigInt(value) : value]]
  })
  const others = free
    .filter(({ name }) => name !== "")
    .map(({ name, kind, value }) => [name, freeValue(name, kind, value)] as const)
  return Object.fromEntries([...values, ...others])
}

const freeValue = (name: string, kind: FreeParameter["kind"], value: string): ParameterValue => {
  if (kind === "text") return value
  if (kind === "boolean") return value === "true"
  const text = value.trim()
  if (/^-?\d+$/.test(text)) return BigInt(text)
  const number = Number(text)
  if (text === "" || !Number.isFinite(number)) throw new Invalid(`parameter ${name}: a number is needed`)
  return number
}

export interface ParameterFieldsProps {
  readonly model: Model
  readonly value: ParameterDraft
  readonly onValue: (value: ParameterDraft) => void
}

export const DeclaredParameters = ({ model, value, onValue }: ParameterFieldsProps) => (
  <>
    {model.parameters.map(({ name, schema, optional, default: preset }) => (
      <MemberEditor
        key={name}
        title={name}
        schema={preset === undefined ? schema : { ...schema, default: preset }}
        root={schema}
        required={optional !== true}
        value={value.declared[name]}
        onValue={(draft) => onValue({ ...value, declared: { ...value.declared, [name]: draft } })}
      />
    ))}
  </>
)

/** Most free parameters of the form. */
const maxFree = 50

export const FreeParameters = ({ value, onValue }: Omit<ParameterFieldsProps, "model">) => {
  const [next, setNext] = useState<FreeParameter>({ name: "", kind: "text", value: "" })
  const change = (free: ReadonlyArray<FreeParameter>) => onValue({ ...value, free })
  const isNamed = next.name !== "" && value.free.every(({ name }) => name !== next.name)
  return (
    <fieldset>
      <legend>Other parameters</legend>
      {value.free.length > 0 && (
        <ul class="plain-list">
          {value.free.map((parameter) => (
            <li key={parameter.name} class="row">
              <code>
                {parameter.name} = {parameter.kind === "text" ? JSON.stringify(parameter.value) : parameter.value}
              </code>
              <button
                type="button"
                class="plain"
                aria-label={`Remove ${parameter.name}`}
                onClick={() => change(value.free.filter(({ name }) => name !== parameter.name))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="row">
        <label class="short">
          Name
          <input value={next.name} onInput={(event) => setNext({ ...next, name: event.currentTarget.value })} />
        </label>
        <label class="short">
          Type
          <select
            value={next.kind}
            onChange={(event) => {
              const kind = (["text", "number", "boolean"] as const).find((one) => one === event.currentTarget.value)
              setNext({ ...next, kind: kind ?? "text", value: kind === "boolean" ? "true" : "" })
            }}
          >
            <option value="text">text</option>
            <option value="number">number</option>
            <option value="boolean">yes or no</option>
          </select>
        </label>
        <label class="short">
          Value
          {next.kind === "boolean" ? (
            <select value={next.value} onChange={(event) => setNext({ ...next, value: event.currentTarget.value })}>
              <option value="true">yes</option>
              <option value="false">no</option>
            </select>
          ) : (
            <input value={next.value} onInput={(event) => setNext({ ...next, value: event.currentTarget.value })} />
          )}
        </label>
        <button
          type="button"
          class="plain"
          disabled={!isNamed || value.free.length >= maxFree}
          onClick={() => {
            change([...value.free, next])
            setNext({ name: "", kind: "text", value: "" })
          }}
        >
          Add the parameter
        </button>
      </div>
    </fieldset>
  )
}

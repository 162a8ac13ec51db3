/** Fields of a JSON form for one value: a text, a number, a choice, yes or no, or any JSON as text. */
import { type Draft, NotJson, readJson, readLeaf, textOf } from "../json/Draft.ts"
import { type JsonForm, labelOf } from "../json/JsonForm.ts"

export const Description = ({ form }: { readonly form: JsonForm }) =>
  form.description === undefined ? null : <small class="quiet">{form.description}</small>

export interface JsonLeafProps {
  readonly title: string
  readonly form: JsonForm
  readonly value: Draft
  readonly onValue: (value: Draft) => void
}

export const JsonLeaf = ({ title, form, value, onValue }: JsonLeafProps) => {
  const problem = value instanceof NotJson ? value.problem : undefined
  const note = (
    <>
      <Description form={form} />
      <span class="field-problem" role="status">
        {problem}
      </span>
    </>
  )
  switch (form.kind) {
    case "boolean":
      return (
        <label class="check">
          <input type="checkbox" checked={value === true} onInput={(event) => onValue(event.currentTarget.checked)} />
          {title} {note}
        </label>
      )
    case "choice": {
      const index = form.values.findIndex((other) => other === value)
      return (
        <label>
          {title}
          <select
            value={String(Math.max(0, index))}
            onChange={(event) => onValue(form.values[Number(event.currentTarget.value)] ?? null)}
          >
            {form.values.map((choice, position) => (
              <option key={position} value={String(position)}>
                {labelOf(choice)}
              </option>
            ))}
          </select>
          {note}
        </label>
      )
    }
    case "text":
      return (
        <label>
          {title}
          <textarea
            dir="auto"
            rows={1}
            value={typeof value === "string" ? value : ""}
            {...(form.maxLength !== undefined && { maxLength: form.maxLength })}
            onInput={(event) => onValue(event.currentTarget.value)}
          />
          {note}
        </label>
      )
    default:
      return (
        <label>
          {title} {form.kind === "any" && <small class="quiet">JSON</small>}
          {form.kind === "any" ? (
            <textarea
              rows={3}
              spellcheck={false}
              value={textOf(value)}
              onInput={(event) => onValue(readJson(event.currentTarget.value))}
            />
          ) : (
            <input
              type="text"
              inputMode={form.kind === "number" && !form.isInteger ? "decimal" : "numeric"}
              aria-invalid={problem !== undefined}
              value={textOf(value)}
              onInput={(event) => onValue(readLeaf(event.currentTarget.value, form))}
            />
          )}
          {note}
        </label>
      )
  }
}

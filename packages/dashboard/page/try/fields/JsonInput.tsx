/** An input whose text is JSON: a form by its JSON Schema, or the text itself. */
import { useState } from "preact/hooks"
import { type Field, typeOf } from "../../api/Model.ts"
import { Invalid } from "../Invalid.ts"
import { type Draft, jsonOf, NotJson } from "../json/Draft.ts"
import { type Json, read, write } from "../json/Json.ts"
import { initial } from "../json/JsonForm.ts"
import { ofText } from "../tensor/Tensor.ts"
import { defaultText } from "./defaults.ts"
import { type EntryProps, useEntry } from "./Entry.ts"
import { FieldProblem } from "./FieldProblem.tsx"
import { JsonEditor } from "./JsonEditor.tsx"

export const JsonInput = ({ field, onEntry }: { readonly field: Field } & EntryProps) => {
  const { name, schema = {} } = field
  const [draft, setDraft] = useState<Draft>(() => parsed(defaultText(field)) ?? initial(schema, schema))
  /** Undefined while the form is used. */
  const [text, setText] = useState<string>()
  const value = jsonOf(draft)
  const problem = useEntry(onEntry, () => {
    if (text !== undefined) {
      if (parsed(text) === undefined) throw new Invalid("this is not JSON")
      return ofText(text)
    }
    if (value instanceof NotJson) throw new Invalid(value.problem)
    return ofText(write(value))
  }, [draft, text])
  const change = (isText: boolean) => {
    if (isText) return setText(value instanceof NotJson ? "" : pretty(value))
    setDraft(parsed(text ?? "") ?? draft)
    setText(undefined)
  }
  return (
    <div class="json-input">
      {text === undefined ? (
        <JsonEditor title={name} schema={schema} root={schema} value={draft} onValue={setDraft} />
      ) : (
        <label>
          {name} <code class="quiet">{typeOf(field)}</code>
          <textarea rows={6} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      )}
      <label class="check">
        <input type="checkbox" checked={text !== undefined} onInput={(event) => change(event.currentTarget.checked)} />
        Write {name} as JSON
      </label>
      <FieldProblem problem={problem} />
    </div>
  )
}

const parsed = (text: string): Json | undefined => {
  try {
    return read(text)
  } catch {
    return undefined
  }
}

/** Integers beyond the doubles are kept as they are. */
const pretty = (value: Json): string => {
  const text = write(value)
  const spaced = JSON.stringify(JSON.parse(text), null, 2)
  return write(JSON.parse(text)) === text ? spaced : text
}

/** Fields for one value: a text, a number, yes or no, or a label. */
import { useState } from "preact/hooks"
import { type Field, typeOf } from "../../api/Model.ts"
import { kindOf, rowOf } from "../tensor/Datatype.ts"
import { ofNumbers, ofText } from "../tensor/Tensor.ts"
import { readNumber } from "../tensor/ValueText.ts"
import { defaultElements, defaultText } from "./defaults.ts"
import { type EntryProps, useEntry } from "./Entry.ts"
import { FieldProblem } from "./FieldProblem.tsx"
import { ModelText } from "../../parts/ModelText.tsx"
import { visible } from "../../parts/VisibleText.ts"

type Props = { readonly field: Field } & EntryProps

const Caption = ({ field }: { readonly field: Field }) => (
  <>
    <ModelText text={field.name} /> <code class="quiet">{typeOf(field)}</code>
  </>
)

export const TextInput = ({ field, onEntry }: Props) => {
  const [text, setText] = useState(() => defaultText(field))
  useEntry(onEntry, () => ofText(text), [text])
  return (
    <label>
      <Caption field={field} />
      <textarea dir="auto" rows={3} value={text} onInput={(event) => setText(event.currentTarget.value)} />
    </label>
  )
}

export const NumberInput = ({ field, onEntry }: Props) => {
  const { datatype } = field
  const [text, setText] = useState(() => defaultText(field) || "0")
  const problem = useEntry(onEntry, () => ofNumbers(datatype, [1], [readNumber(text, datatype)]), [text])
  const { kind, range } = rowOf(datatype)
  const rest = {
    value: text,
    "aria-invalid": problem !== undefined,
    onInput: (event: { readonly currentTarget: HTMLInputElement }) => setText(event.currentTarget.value),
  }
  return (
    <label>
      <Caption field={field} />
      {range !== undefined && <small class="quiet"> {`${range[0]} to ${range[1]}`}</small>}
      {kind === "integer" ? (
        <input type="number" min={String(range?.[0])} max={String(range?.[1])} step={1} {...rest} />
      ) : (
        // A number field of the browser would round integers of 64 bits, and has no NaN.
        <input type="text" inputMode={kind === "long" ? "numeric" : "decimal"} {...rest} />
      )}
      <FieldProblem problem={problem} />
    </label>
  )
}

export const BooleanInput = ({ field, onEntry }: Props) => {
  const [isTrue, setTrue] = useState(() => /^(true|1)$/.test(defaultText(field)))
  useEntry(onEntry, () => ofNumbers(field.datatype, [1], [isTrue ? 1 : 0]), [isTrue])
  return (
    <label class="check">
      <input type="checkbox" checked={isTrue} onInput={(event) => setTrue(event.currentTarget.checked)} />
      <span>
        <Caption field={field} />
      </span>
    </label>
  )
}

export const LabelInput = ({ field, onEntry }: Props) => {
  const [index, setIndex] = useState(() => Number(defaultElements(field)?.[0] ?? 0))
  useEntry(onEntry, () => ofNumbers(field.datatype, [1], [index]), [index])
  return (
    <label>
      <Caption field={field} />
      <select value={String(index)} onChange={(event) => setIndex(Number(event.currentTarget.value))}>
        {field.labels.map((label, position) => (
          <option key={position} value={String(position)}>
            {visible(label)}
          </option>
        ))}
      </select>
    </label>
  )
}

/** The field for a tensor of one number. */
export const ScalarInput = (props: Props) =>
  kindOf(props.field.datatype) === "boolean" ? <BooleanInput {...props} /> : <NumberInput {...props} />

/** The field of one input of the model, with a switch if it is optional. */
import { useState } from "preact/hooks"
import type { Field } from "../../api/Model.ts"
import { kindOf } from "../tensor/Datatype.ts"
import { BytesInput } from "./BytesInput.tsx"
import type { Entry } from "./Entry.ts"
import type { Extents } from "./Extents.ts"
import { JsonInput } from "./JsonInput.tsx"
import { TensorInput } from "./TensorInput.tsx"
import { LabelInput, ScalarInput, TextInput } from "./ValueFields.tsx"
import { ModelText } from "../../parts/ModelText.tsx"

export interface InputFieldProps {
  readonly field: Field
  readonly extents: Extents
  /** Undefined for an input that is left out. */
  readonly onEntry: (entry: Entry | undefined) => void
}

export const InputField = ({ field, extents, onEntry }: InputFieldProps) => {
  const [isSent, setSent] = useState(!field.optional)
  return (
    <div class="input-field">
      {field.optional && (
        <label class="check">
          <input
            type="checkbox"
            checked={isSent}
            onInput={(event) => {
              setSent(event.currentTarget.checked)
              if (!event.currentTarget.checked) onEntry(undefined)
            }}
          />
          <span>
            Send <ModelText text={field.name} />
          </span>
        </label>
      )}
      {isSent && <Content field={field} extents={extents} onEntry={onEntry} />}
    </div>
  )
}

const Content = ({ field, extents, onEntry }: InputFieldProps) => {
  const props = { field, onEntry }
  switch (field.form) {
    case "label":
      return <LabelInput {...props} />
    case "text":
      return <TextInput {...props} />
    case "scalar":
      return <ScalarInput {...props} />
    case "json":
      return <JsonInput {...props} />
    default: {
      const isElement = kindOf(field.datatype) === "bytes" && field.dims.length === 1 && field.dims[0] === 1
      if (!isElement) return <TensorInput {...props} extents={extents} />
      return (
        <fieldset>
          <legend>
            <ModelText text={field.name} />
          </legend>
          <BytesInput {...props} />
        </fieldset>
      )
    }
  }
}

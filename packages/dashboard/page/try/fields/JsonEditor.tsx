/** A form for a value of JSON, made of its JSON Schema. */
import { useMemo, useState } from "preact/hooks"
import type { JsonSchema } from "../../api/Protocol.ts"
import { type Draft, isDraftArray, isDraftObject, isJson } from "../json/Draft.ts"
import { formOf, initial, type JsonForm, optionOf } from "../json/JsonForm.ts"
import { Description, JsonLeaf } from "./JsonLeaf.tsx"

export interface JsonEditorProps {
  readonly title: string
  readonly schema: JsonSchema
  /** Root of references. */
  readonly root: JsonSchema
  readonly value: Draft
  readonly onValue: (value: Draft) => void
}

export const JsonEditor = (props: JsonEditorProps) => {
  const { schema, root } = props
  const form = useMemo(() => formOf(schema, root), [schema, root])
  switch (form.kind) {
    case "object":
      return <ObjectEditor {...props} form={form} />
    case "array":
      return <ArrayEditor {...props} form={form} />
    case "union":
      return <UnionEditor {...props} form={form} />
    default:
      return <JsonLeaf {...props} form={form} />
  }
}

type Of<K extends JsonForm["kind"]> = JsonEditorProps & { readonly form: Extract<JsonForm, { readonly kind: K }> }

const ObjectEditor = ({ title, form, root, value, onValue }: Of<"object">) => {
  const object = isDraftObject(value) ? value : {}
  const set = (name: string, member: Draft | undefined) => onValue({ ...object, [name]: member })
  const known = new Set(form.members.map(({ name }) => name))
  const others = Object.keys(object).filter((name) => !known.has(name) && object[name] !== undefined)
  return (
    <fieldset>
      <legend>{title}</legend>
      <Description form={form} />
      {form.members.map(({ name, schema, required }) => (
        <MemberEditor
          key={name}
          title={name}
          schema={schema}
          root={root}
          required={required}
          value={Object.hasOwn(object, name) ? object[name] : undefined}
          onValue={(member) => set(name, member)}
        />
      ))}
      {form.rest !== undefined &&
        others.map((name) => (
          <MemberEditor
            key={name}
            title={name}
            schema={form.rest ?? {}}
            root={root}
            required={false}
            value={object[name]}
            onValue={(member) => set(name, member)}
          />
        ))}
      {form.rest !== undefined && (
        <NewMember title={title} onName={(name) => set(name, initial(form.rest ?? {}, root))} />
      )}
    </fieldset>
  )
}

interface MemberEditorProps {
  readonly title: string
  readonly schema: JsonSchema
  readonly root: JsonSchema
  readonly required: boolean
  readonly value: Draft | undefined
  readonly onValue: (value: Draft | undefined) => void
}

/** A member of an object, which may be left out if it is not required. */
export const MemberEditor = ({ title, schema, root, required, value, onValue }: MemberEditorProps) => (
  <div class="member">
    {!required && (
      <label class="check">
        <input
          type="checkbox"
          checked={value !== undefined}
          onInput={(event) => onValue(event.currentTarget.checked ? initial(schema, root) : undefined)}
        />
        Send {title}
      </label>
    )}
    {value !== undefined && <JsonEditor title={title} schema={schema} root={root} value={value} onValue={onValue} />}
  </div>
)

const NewMember = ({ title, onName }: { readonly title: string; readonly onName: (name: string) => void }) => {
  const [name, setName] = useState("")
  return (
    <p class="row">
      <input
        aria-label={`Name of a new member of ${title}`}
        placeholder="name"
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button
        type="button"
        class="plain"
        disabled={name === ""}
        onClick={() => {
          onName(name)
          setName("")
        }}
      >
        Add a member
      </button>
    </p>
  )
}

const ArrayEditor = ({ title, form, root, value, onValue }: Of<"array">) => {
  const items: ReadonlyArray<Draft> = isDraftArray(value) ? value : []
  const schemaOf = (index: number) => form.first[index] ?? form.items ?? {}
  return (
    <fieldset>
      <legend>{title}</legend>
      <Description form={form} />
      {items.map((item, index) => (
        <div class="member" key={index}>
          <JsonEditor
            title={`${title} ${index + 1}`}
            schema={schemaOf(index)}
            root={root}
            value={item}
            onValue={(changed) => onValue(items.map((other, at) => (at === index ? changed : other)))}
          />
          {items.length > form.minItems && (
            <button
              type="button"
              class="plain"
              aria-label={`Remove ${title} ${index + 1}`}
              onClick={() => onValue(items.filter((_, at) => at !== index))}
            >
              Remove
            </button>
          )}
        </div>
      ))}
      {items.length < form.maxItems && (
        <button
          type="button"
          class="plain"
          aria-label={`Add to ${title}`}
          onClick={() => onValue([...items, initial(schemaOf(items.length), root)])}
        >
          Add
        </button>
      )}
    </fieldset>
  )
}

const UnionEditor = ({ title, form, root, value, onValue }: Of<"union">) => {
  const [selected, setSelected] = useState(() => (isJson(value) ? optionOf(value, form.options, root) : 0))
  const option = form.options[selected]
  return (
    <div class="union">
      <label>
        {title}: kind
        <select
          value={String(selected)}
          onChange={(event) => {
            const index = Number(event.currentTarget.value)
            setSelected(index)
            onValue(initial(form.options[index]?.schema ?? {}, root))
          }}
        >
          {form.options.map(({ name }, index) => (
            <option key={index} value={String(index)}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {option !== undefined && (
        <JsonEditor key={selected} title={title} schema={option.schema} root={root} value={value} onValue={onValue} />
      )}
    </div>
  )
}

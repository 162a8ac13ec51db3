/** The inputs and outputs of a model in one line. */
import { type Field, typeOf } from "../api/Model.ts"
import { useModel } from "../parts/useModel.ts"
import { ModelText } from "../parts/ModelText.tsx"

export const Signature = ({ name, version }: { readonly name: string; readonly version: string }) => {
  const { model, problem } = useModel(name, version)
  if (problem !== undefined) return <span class="reason">{problem.message}</span>
  if (model === undefined) return <span aria-busy="true">…</span>
  return (
    <span class="signature">
      <Fields fields={model.inputs} /> <span aria-label="gives">→</span> <Fields fields={model.outputs} />
      {model.decoupled && <span class="tag">stream</span>}
    </span>
  )
}

const Fields = ({ fields }: { readonly fields: ReadonlyArray<Field> }) => (
  <>
    {fields.map((field, position) => (
      <span key={field.name}>
        {position > 0 && ", "}
        <ModelText text={field.name} /> <code>{typeOf(field)}</code>
      </span>
    ))}
  </>
)

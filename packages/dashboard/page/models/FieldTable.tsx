/** The inputs or outputs of a model. */
import { type Field, typeOf } from "../api/Model.ts"
import { ModelText } from "../parts/ModelText.tsx"
import { visible } from "../parts/VisibleText.ts"

export interface FieldTableProps {
  readonly title: string
  readonly fields: ReadonlyArray<Field>
}

export const FieldTable = ({ title, fields }: FieldTableProps) => (
  <table>
    <caption>{title}</caption>
    <thead>
      <tr>
        <th scope="col">Name</th>
        <th scope="col">Type</th>
        <th scope="col">Value</th>
      </tr>
    </thead>
    <tbody>
      {fields.map((field) => (
        <tr key={field.name}>
          <th scope="row">
            <ModelText text={field.name} />
          </th>
          <td>
            <code>{typeOf(field)}</code>
          </td>
          <td>{visible(valueOf(field))}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

/** Labels that are listed; thousands would hide the rest of the page. */
const maxLabels = 20

const valueOf = ({ form, datatype, labels, optional }: Field): string => {
  const names = labels.slice(0, maxLabels).join(", ") + (labels.length > maxLabels ? `, … (${labels.length})` : "")
  const tensor = datatype === "BYTES" ? "bytes" : "tensor"
  const value = { tensor, scalar: "one number", label: "one of", text: "text", json: "JSON" }[form]
  const labelled = labels.length === 0 ? value : `${value}: ${names}`
  return optional ? `${labelled}, optional` : labelled
}

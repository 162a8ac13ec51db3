/** One operation of the API: its parameters, its schemas, and a request to try. */
import { useState } from "preact/hooks"
import { type Body, type Document, type Entry, parametersOf, responsesOf } from "./Document.ts"
import { SchemaView } from "./SchemaView.tsx"
import { TryOperation } from "./TryOperation.tsx"
import { visible } from "../parts/VisibleText.ts"

export interface OperationViewProps {
  readonly document: Document
  readonly entry: Entry
}

export const OperationView = ({ document, entry }: OperationViewProps) => {
  const [isOpen, setOpen] = useState(false)
  const { method, path, operation } = entry
  return (
    <details class="operation" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code class="method">{method}</code> <code>{path}</code>{" "}
        <span class="quiet">{visible(operation.summary ?? operation.operationId ?? "")}</span>
      </summary>
      {isOpen && <Content document={document} entry={entry} />}
    </details>
  )
}

const Content = ({ document, entry }: OperationViewProps) => {
  const { description, requestBody } = entry.operation
  const parameters = parametersOf(document, entry.operation)
  return (
    <div class="panel">
      {description !== undefined && <Description text={description} />}
      {parameters.length > 0 && (
        <table>
          <caption>Parameters</caption>
          <tbody>
            {parameters.map(({ name, in: place, required, description: about }) => (
              <tr key={`${place} ${name}`}>
                <th scope="row">{name}</th>
                <td>
                  {place}
                  {required === true ? "" : ", optional"}
                </td>
                <td>{about}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {requestBody !== undefined && <Schemas document={document} title="Request" body={requestBody} />}
      {responsesOf(document, entry.operation).map(([status, body]) => (
        <Schemas key={status} document={document} title={`Response ${status}`} body={body} />
      ))}
      <TryOperation document={document} entry={entry} />
    </div>
  )
}

/** Of the markup that a description may have, the server uses backticks alone. */
const Description = ({ text }: { readonly text: string }) => (
  <p>
    {visible(text)
      .split("`")
      // oxlint-disable-next-line react/no-array-index-key
      .map((part, position) => (position % 2 === 0 ? part : <code key={position}>{part}</code>))}
  </p>
)

interface SchemasProps {
  readonly document: Document
  readonly title: string
  readonly body: Body
}

const Schemas = ({ document, title, body: { description, content = {} } }: SchemasProps) => (
  <details>
    <summary>
      {title}
      {description === undefined ? "" : `: ${description}`}
    </summary>
    {Object.entries(content).map(([type, { schema }]) => (
      <div key={type}>
        <code>{type}</code>
        {schema !== undefined && <SchemaView document={document} schema={schema} />}
      </div>
    ))}
    {Object.keys(content).length === 0 && <p class="quiet">No body.</p>}
  </details>
)

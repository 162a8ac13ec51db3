/** One operation of the API: its parameters, its schemas, and a request to try. */
import { useState } from "preact/hooks"
import type { Body, Document, Entry } from "./Document.ts"
import { TryOperation } from "./TryOperation.tsx"

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
        <span class="quiet">{operation.summary ?? operation.operationId ?? ""}</span>
      </summary>
      {isOpen && <Content document={document} entry={entry} />}
    </details>
  )
}

const Content = ({ document, entry }: OperationViewProps) => {
  const { description, parameters = [], requestBody, responses = {} } = entry.operation
  return (
    <div class="panel">
      {description !== undefined && <p>{description}</p>}
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
      {requestBody !== undefined && <Schemas title="Request" body={requestBody} />}
      {Object.entries(responses).map(([status, body]) => (
        <Schemas key={status} title={`Response ${status}`} body={body} />
      ))}
      <TryOperation document={document} entry={entry} />
    </div>
  )
}

const Schemas = ({ title, body: { description, content = {} } }: { readonly title: string; readonly body: Body }) => (
  <details>
    <summary>
      {title}
      {description === undefined ? "" : `: ${description}`}
    </summary>
    {Object.entries(content).map(([type, { schema }]) => (
      <div key={type}>
        <code>{type}</code>
        <pre tabIndex={0}>{JSON.stringify(schema, null, 2)}</pre>
      </div>
    ))}
  </details>
)

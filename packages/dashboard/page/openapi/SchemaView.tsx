/** A schema of the document as text, and the schemas that it refers to, each behind its name. */
import { useState } from "preact/hooks"
import type { JsonSchema } from "../api/Protocol.ts"
import { visible } from "../parts/VisibleText.ts"
import { type Document, nameOf, namesIn, resolve } from "./Document.ts"

export interface SchemaViewProps {
  readonly document: Document
  readonly schema: JsonSchema
}

export const SchemaView = ({ document, schema: given }: SchemaViewProps) => {
  const schema = resolve(document, given)
  const name = nameOf(given)
  return (
    <>
      {name !== undefined && <code> {name}</code>}
      <pre tabIndex={0}>{visible(JSON.stringify(schema, null, 2) ?? "")}</pre>
      {namesIn(schema).map((inner) => (
        <Named key={inner} document={document} name={inner} />
      ))}
    </>
  )
}

/** Recursive schemas end here: the content exists once it is opened. */
const Named = ({ document, name }: { readonly document: Document; readonly name: string }) => {
  const [isOpen, setOpen] = useState(false)
  const schema = document.components?.schemas?.[name]
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <code>{name}</code>
      </summary>
      {isOpen && schema !== undefined && <SchemaView document={document} schema={schema} />}
    </details>
  )
}

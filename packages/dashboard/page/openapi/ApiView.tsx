/** Every HTTP route of the server, from its OpenAPI document, with requests to try. */
import { useEffect, useState } from "preact/hooks"
import { json } from "../api/http.ts"
import { index } from "../api/models.ts"
import { route, setQuery } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { useTask } from "../parts/useTask.ts"
import { byTag, type Document } from "./Document.ts"
import { OperationView } from "./OperationView.tsx"
import { visible } from "../parts/VisibleText.ts"

export const ApiView = () => {
  const [document, setDocument] = useState<Document>()
  const { problem, run } = useTask()
  const models = index.value
  useEffect(() => run(async () => setDocument(await json<Document>("/openapi.json"))), [models])
  return (
    <>
      <h1>API</h1>
      <p>
        <a href="/openapi.json">The OpenAPI document of this server</a> describes its HTTP routes and its models, for
        generators of clients.
      </p>
      {problem !== undefined && <Problem title="The document is not available." refusal={problem} />}
      {document !== undefined && <Groups document={document} />}
    </>
  )
}

const Groups = ({ document }: { readonly document: Document }) => {
  const groups = byTag(document)
  const tags = [...groups.keys()]
  const asked = route.value.query.get("tag")
  const selected = asked !== null && groups.has(asked) ? asked : tags[0]
  return (
    <>
      <div class="bar">
        <label>
          Part{" "}
          <select value={selected} onChange={(event) => setQuery("tag", event.currentTarget.value)}>
            {tags.map((tag) => (
              <option key={tag} value={tag}>
                {visible(tag)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {(groups.get(selected ?? "") ?? []).map((entry) => (
        <OperationView key={`${entry.method} ${entry.path}`} document={document} entry={entry} />
      ))}
    </>
  )
}

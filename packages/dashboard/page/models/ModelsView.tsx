/** All models of the server, failed ones first. */
import { useState } from "preact/hooks"
import { index, indexProblem } from "../api/models.ts"
import type { IndexEntry } from "../api/Protocol.ts"
import { link, route, setQuery } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { canControl } from "./control.ts"
import { LoadModel } from "./LoadModel.tsx"
import { Signature } from "./Signature.tsx"
import { isFailed, State } from "./State.tsx"

export const ModelsView = () => {
  const entries = index.value
  const problem = indexProblem.value
  const filter = route.value.query.get("filter") ?? ""
  return (
    <>
      <h1>Models</h1>
      {problem !== undefined && problem.status !== 0 && (
        <Problem title="The models cannot be listed." refusal={problem} />
      )}
      {entries === undefined ? (
        <p aria-busy="true">Reading the models…</p>
      ) : (
        <>
          <div class="bar">
            <label>
              Filter{" "}
              <input
                type="search"
                value={filter}
                onInput={(event) => setQuery("filter", event.currentTarget.value || undefined)}
              />
            </label>
            <span role="status">{countOf(entries, filter)}</span>
            {canControl() && <LoadModel />}
          </div>
          <ModelTable entries={sorted(entries.filter((entry) => matches(entry, filter)))} />
        </>
      )}
    </>
  )
}

const matches = ({ name, state = "UNKNOWN", reason = "" }: IndexEntry, filter: string): boolean =>
  `${name} ${state} ${reason}`.toLowerCase().includes(filter.trim().toLowerCase())

const countOf = (entries: ReadonlyArray<IndexEntry>, filter: string): string => {
  const found = entries.filter((entry) => matches(entry, filter)).length
  const failed = entries.filter(isFailed).length
  const all = filter === "" ? `${found} models` : `${found} of ${entries.length} models`
  return failed === 0 ? all : `${all}, ${failed} failed`
}

const sorted = (entries: ReadonlyArray<IndexEntry>): ReadonlyArray<IndexEntry> =>
  entries.toSorted((a, b) => Number(isFailed(b)) - Number(isFailed(a)))

/** Rows that are shown before the user asks for more, so that hundreds of models do not make hundreds of requests. */
const step = 50

const ModelTable = ({ entries }: { readonly entries: ReadonlyArray<IndexEntry> }) => {
  const [shown, setShown] = useState(step)
  if (entries.length === 0) return <p>No model matches.</p>
  return (
    <>
      <table class="models">
        <thead>
          <tr>
            <th scope="col">Model</th>
            <th scope="col">Version</th>
            <th scope="col">State</th>
            <th scope="col">Signature</th>
          </tr>
        </thead>
        <tbody>
          {entries.slice(0, shown).map((entry) => (
            <ModelRow key={`${entry.name}/${entry.version ?? ""}`} entry={entry} />
          ))}
        </tbody>
      </table>
      {entries.length > shown && (
        <p>
          <button type="button" onClick={() => setShown(shown + step)}>
            Show {Math.min(step, entries.length - shown)} more
          </button>
        </p>
      )}
    </>
  )
}

const ModelRow = ({ entry }: { readonly entry: IndexEntry }) => {
  const { name, version = "", reason = "" } = entry
  return (
    <tr>
      <th scope="row">
        <a href={link(["models", name, ...(version === "" ? [] : [version])])}>{name}</a>
      </th>
      <td>{version}</td>
      <td>
        <State entry={entry} />
      </td>
      <td>
        {entry.state === "READY" ? <Signature name={name} version={version} /> : <span class="reason">{reason}</span>}
      </td>
    </tr>
  )
}

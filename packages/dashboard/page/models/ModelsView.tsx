/** All models of the server, failed ones first. */
import { useEffect, useState } from "preact/hooks"
import { index, indexProblem, refresh } from "../api/models.ts"
import type { IndexEntry } from "../api/Protocol.ts"
import { askAgain } from "../api/secrets.ts"
import { link, route, setQuery } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { canControl } from "./control.ts"
import { runsAs } from "./Facts.tsx"
import { LoadModel } from "./LoadModel.tsx"
import { Signature } from "./Signature.tsx"
import { isFailed, State } from "./State.tsx"
import { ModelText } from "../parts/ModelText.tsx"
import { visible } from "../parts/VisibleText.ts"

export const ModelsView = () => {
  // Live data tells of models that change, but not of directories that appear in a repository.
  useEffect(() => void refresh(), [])
  const entries = index.value
  const problem = indexProblem.value
  const filter = route.value.query.get("filter") ?? ""
  return (
    <>
      <h1>Models</h1>
      {problem !== undefined && problem.status !== 0 && (
        <>
          <Problem title="The models cannot be listed." refusal={problem} />
          <button
            type="button"
            onClick={() => {
              askAgain()
              void refresh()
            }}
          >
            Try again
          </button>
        </>
      )}
      {entries === undefined && (problem === undefined || problem.status === 0) && (
        <p aria-busy="true">Reading the models…</p>
      )}
      {entries !== undefined && (
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
            <th scope="col">How it runs</th>
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
        <a href={link(["models", name, ...(version === "" ? [] : [version])])}>
          <ModelText text={name} />
        </a>
      </th>
      <td>{version}</td>
      <td>
        <State entry={entry} />
      </td>
      <td class="wide">
        {entry.state === "READY" ? (
          <Signature name={name} version={version} />
        ) : (
          <span class="reason">{visible(reason)}</span>
        )}
      </td>
      <td class="quiet runs">{runsAs(name, version)}</td>
    </tr>
  )
}

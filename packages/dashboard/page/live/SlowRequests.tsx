/** The slowest requests of the last minutes, with the parts of their time. */
import { useState } from "preact/hooks"
import type { SlowRequest } from "../../src/live/SlowRequest.ts"
import { clock, duration } from "./Numbers.ts"
import type { Subject } from "./Series.ts"
import { ModelText } from "../parts/ModelText.tsx"
import { visible } from "../parts/VisibleText.ts"

export interface SlowRequestsProps {
  readonly slow: ReadonlyArray<SlowRequest>
  readonly subject: Subject | undefined
}

/** Requests that are shown first. */
const few = 10

const names = ["queue", "input", "compute", "output"] as const

export const SlowRequests = ({ slow, subject }: SlowRequestsProps) => {
  const shown = slow.filter(
    ({ name, version }) => subject === undefined || (name === subject.name && version === subject.version),
  )
  const [isWhole, setWhole] = useState(false)
  if (shown.length === 0) return null
  const longest = Math.max(...shown.map(({ millis }) => millis))
  return (
    <section aria-labelledby="slow">
      <h2 id="slow">Slowest requests of the last 10 minutes</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Model</th>
            <th scope="col">Request id</th>
            <th scope="col">Outcome</th>
            <th scope="col" class="number">
              Rows of its batch
            </th>
            <th scope="col" class="number">
              Latency
            </th>
            <th scope="col">Parts</th>
          </tr>
        </thead>
        <tbody>
          {(isWhole ? shown : shown.slice(0, few)).map((request) => (
            <Row key={`${request.time} ${request.name} ${request.millis}`} request={request} longest={longest} />
          ))}
        </tbody>
      </table>
      {shown.length > few && !isWhole && (
        <button type="button" class="plain" onClick={() => setWhole(true)}>
          Show all {shown.length}
        </button>
      )}
    </section>
  )
}

const Row = ({ request, longest }: { readonly request: SlowRequest; readonly longest: number }) => {
  const { time, name, version, id, outcome, batch, millis, parts } = request
  return (
    <tr>
      <td>{clock(time)}</td>
      <th scope="row">
        <ModelText text={name} /> <small>{version}</small>
      </th>
      <td>{visible(id)}</td>
      <td>{outcome}</td>
      <td class="number">{batch === 0 ? "–" : batch}</td>
      <td class="number">{duration(millis)}</td>
      <td class="parts">{parts !== undefined && <Parts parts={parts} longest={longest} />}</td>
    </tr>
  )
}

const Parts = ({ parts, longest }: { readonly parts: readonly number[]; readonly longest: number }) => (
  <>
    <span class="hidden">{names.map((name, position) => `${name} ${duration(parts[position])}`).join(", ")}</span>
    <span class="stack" aria-hidden="true">
      {names.map((name, position) => (
        <span
          key={name}
          title={`${name} ${duration(parts[position])}`}
          style={{ background: `var(--${name})`, width: `${((parts[position] ?? 0) / longest) * 100}%` }}
        />
      ))}
    </span>
  </>
)

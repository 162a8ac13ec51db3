/** The load of each model in the window, the busiest first. */
import type { LiveStep } from "../../src/live/LiveStep.ts"
import { link } from "../app/route.ts"
import { duration, number } from "./Numbers.ts"
import { activeModels, modelSteps, type Subject, totals } from "./Series.ts"
import { ModelText } from "../parts/ModelText.tsx"

/** Rows that are computed each second. */
const maxRows = 50

export const ModelLoads = ({ steps }: { readonly steps: ReadonlyArray<LiveStep> }) => {
  const subjects = activeModels(steps)
  if (subjects.length === 0) return null
  return (
    <section aria-labelledby="loads">
      <h2 id="loads">Models</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">Model</th>
            {["Requests/s", "Errors", "p50", "p99", "Queue", "Rows of a batch"].map((title) => (
              <th key={title} scope="col" class="number">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {subjects.slice(0, maxRows).map((subject) => (
            <Load key={`${subject.name}/${subject.version}`} steps={steps} subject={subject} />
          ))}
        </tbody>
      </table>
      {subjects.length > maxRows && <p class="quiet">{subjects.length - maxRows} more had fewer requests.</p>}
    </section>
  )
}

const Load = ({ steps, subject }: { readonly steps: ReadonlyArray<LiveStep>; readonly subject: Subject }) => {
  const { perSecond, failures, quantiles, rows, executions } = totals(steps, subject)
  const last = steps.at(-1)
  const queue = last === undefined ? 0 : (modelSteps(last, subject)[0]?.queue ?? 0)
  const { name, version } = subject
  const cells = [
    number(perSecond),
    number(failures),
    duration(quantiles[0]),
    duration(quantiles[2]),
    number(queue),
    executions === 0 ? "–" : number(rows / executions),
  ]
  return (
    <tr>
      <th scope="row">
        <a href={link(["live"], { model: `${name}/${version}` })}>
          <ModelText text={name} />
        </a>{" "}
        <small>{version}</small>
      </th>
      {cells.map((cell, position) => (
        // oxlint-disable-next-line react/no-array-index-key
        <td key={position} class="number">
          {cell}
        </td>
      ))}
    </tr>
  )
}

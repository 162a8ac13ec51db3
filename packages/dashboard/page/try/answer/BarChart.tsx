/** The classes with the largest scores, as bars with their probabilities. */
import { useState } from "preact/hooks"
import { areProbabilities, top } from "./Classes.ts"
import { short } from "./Range.ts"
import { visible } from "../../parts/VisibleText.ts"

export interface BarChartProps {
  readonly title: string
  readonly scores: ArrayLike<number>
  readonly labels: ReadonlyArray<string>
}

const step = 10

export const BarChart = ({ title, scores, labels }: BarChartProps) => {
  const [shown, setShown] = useState(step)
  const isProbability = areProbabilities(scores)
  return (
    <>
      <table class="bars">
        <caption>
          {title}: {isProbability ? "probabilities" : "scores, and their softmax"}
        </caption>
        <tbody>
          {top(scores, labels, shown).map(({ index, label, score, probability }) => (
            <tr key={index}>
              <th scope="row">
                <bdi>{visible(label)}</bdi>
              </th>
              <td>
                <div class="bar-track" aria-hidden="true">
                  <div class="bar-fill" style={{ width: `${100 * probability}%` }} />
                </div>
              </td>
              <td class="number">{(100 * probability).toFixed(1)} %</td>
              {!isProbability && <td class="number quiet">{short(score)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {scores.length > shown && (
        <button type="button" class="plain" onClick={() => setShown(Math.min(scores.length, shown * 5))}>
          Show more of {scores.length}
        </button>
      )}
    </>
  )
}

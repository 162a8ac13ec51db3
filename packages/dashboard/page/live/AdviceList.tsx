/** The advice of the server, with the figures that prove it. */
import type { Advice } from "../../src/live/Advice.ts"
import { link } from "../app/route.ts"
import type { Subject } from "./Series.ts"
import { ModelText } from "../parts/ModelText.tsx"

export interface AdviceListProps {
  readonly advice: ReadonlyArray<Advice>
  readonly subject: Subject | undefined
}

export const AdviceList = ({ advice, subject }: AdviceListProps) => {
  const shown = advice.filter(({ model }) => subject === undefined || model === undefined || model === subject.name)
  if (shown.length === 0) return null
  return (
    <section aria-labelledby="advice">
      <h2 id="advice">Advice</h2>
      <ul class="advice">
        {shown.map(({ id, severity, model, version = "", text, option, guide }) => (
          <li key={id} class={severity}>
            <strong>{severity === "problem" ? "Problem" : "Improvement"}</strong>
            {model !== undefined && (
              <>
                {" of "}
                <a href={link(["models", model, ...(version === "" ? [] : [version])])}>
                  <ModelText text={model} />
                </a>
              </>
            )}
            : {text} <span class="option">Option:</span> <code>{option}</code>{" "}
            <span class="quiet">(docs/guides/{guide})</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

/** One version of a model: its state, its signature, how it runs, and a form to try it. */
import type { Model } from "../api/Model.ts"
import { index, indexProblem } from "../api/models.ts"
import { link, route } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { useModel } from "../parts/useModel.ts"
import { Try } from "../try/Try.tsx"
import { canControlModel } from "./control.ts"
import { EnsembleGraph } from "./EnsembleGraph.tsx"
import { Facts } from "./Facts.tsx"
import { FieldTable } from "./FieldTable.tsx"
import { LoadModel } from "./LoadModel.tsx"
import { State } from "./State.tsx"
import { UnloadModel } from "./UnloadModel.tsx"
import { ModelText } from "../parts/ModelText.tsx"
import { visible } from "../parts/VisibleText.ts"

export const ModelView = () => {
  const [, name = "", version = ""] = route.value.parts
  const entry = index.value?.find((other) => other.name === name && (version === "" || other.version === version))
  // Without the index, which may be restricted, the model itself tells whether it is there.
  const isDescribed = index.value === undefined ? indexProblem.value !== undefined : entry?.state === "READY"
  const { model, problem } = useModel(name, version, isDescribed)
  return (
    <>
      <p class="crumbs">
        <a href={link(["models"])}>Models</a>
      </p>
      <div class="bar">
        <h1>
          <ModelText text={name} /> {version !== "" && <small>version {version}</small>}
        </h1>
        {entry !== undefined && <State entry={entry} />}
        <a href={link(["live"], { model: `${name}/${version}` })}>Live</a>
        {entry !== undefined && canControlModel(name, version) && <LoadModel name={name} />}
        {entry?.state === "READY" && canControlModel(name, version) && (
          <UnloadModel name={name} isEnsemble={model?.config.platform === "ensemble"} />
        )}
      </div>
      {entry?.state !== "READY" && entry?.reason !== undefined && entry.reason !== "" && (
        <div class="problem">
          <strong>Why it is not ready</strong>
          <pre>{visible(entry.reason)}</pre>
        </div>
      )}
      {index.value !== undefined && entry === undefined && <p>The server has no such model.</p>}
      {problem !== undefined && <Problem title="The model cannot be described." refusal={problem} />}
      {model !== undefined && <Description model={model} />}
    </>
  )
}

const Description = ({ model }: { readonly model: Model }) => (
  <>
    <section aria-labelledby="try">
      <h2 id="try">Try it</h2>
      <Try model={model} />
    </section>
    <section aria-labelledby="signature">
      <h2 id="signature">Signature</h2>
      <FieldTable title="Inputs" fields={model.inputs} />
      <FieldTable title="Outputs" fields={model.outputs} />
      {model.errors.length > 0 && (
        <p>
          Errors:{" "}
          {model.errors.map(({ tag, http_status: status }) => (
            <span class="tag" key={tag}>
              {tag} ({status})
            </span>
          ))}
        </p>
      )}
    </section>
    {model.config.ensemble_scheduling !== undefined && (
      <section aria-labelledby="graph">
        <h2 id="graph">Ensemble</h2>
        <EnsembleGraph model={model} steps={model.config.ensemble_scheduling.step} />
      </section>
    )}
    <section aria-labelledby="facts">
      <h2 id="facts">How it runs</h2>
      <Facts model={model} />
    </section>
  </>
)

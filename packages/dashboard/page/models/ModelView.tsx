/** One version of a model: its state, its signature, how it runs, and a form to try it. */
import type { Model } from "../api/Model.ts"
import { index } from "../api/models.ts"
import { link, route } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { useModel } from "../parts/useModel.ts"
import { Try } from "../try/Try.tsx"
import { canControl } from "./control.ts"
import { EnsembleGraph } from "./EnsembleGraph.tsx"
import { Facts } from "./Facts.tsx"
import { FieldTable } from "./FieldTable.tsx"
import { LoadModel } from "./LoadModel.tsx"
import { State } from "./State.tsx"
import { UnloadModel } from "./UnloadModel.tsx"

export const ModelView = () => {
  const [, name = "", version = ""] = route.value.parts
  const { model, problem } = useModel(name, version)
  const entry = index.value?.find((other) => other.name === name && (version === "" || other.version === version))
  return (
    <>
      <p class="crumbs">
        <a href={link(["models"])}>Models</a>
      </p>
      <div class="bar">
        <h1>
          {name} {version !== "" && <small>version {version}</small>}
        </h1>
        {entry !== undefined && <State entry={entry} />}
        <a href={link(["live"], { model: `${name}/${version}` })}>Live</a>
        {canControl() && <LoadModel name={name} />}
        {canControl() && entry?.state === "READY" && (
          <UnloadModel name={name} isEnsemble={model?.config.platform === "ensemble"} />
        )}
      </div>
      {entry?.state !== "READY" && entry?.reason !== undefined && entry.reason !== "" && (
        <div class="problem">
          <strong>Why it is not ready</strong>
          <pre>{entry.reason}</pre>
        </div>
      )}
      {problem !== undefined && entry?.state === "READY" && (
        <Problem title="The model cannot be described." refusal={problem} />
      )}
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

/** The graph of an ensemble: its models in columns, in the order in which they can run, and their tensors. */
import type { Model } from "../api/Model.ts"
import type { EnsembleStep } from "../api/Protocol.ts"
import { link } from "../app/route.ts"
import { columns } from "./GraphLayout.ts"
import { ModelText } from "../parts/ModelText.tsx"
import { visible } from "../parts/VisibleText.ts"

export interface EnsembleGraphProps {
  readonly model: Model
  readonly steps: ReadonlyArray<EnsembleStep>
}

export const EnsembleGraph = ({ model: { inputs, outputs }, steps }: EnsembleGraphProps) => (
  <div class="graph" role="group" aria-label="Graph of the ensemble" tabIndex={0}>
    <div class="column">
      <div class="node">
        <strong>request</strong>
        <span>{namesOf(inputs)}</span>
      </div>
    </div>
    {columns(
      steps,
      inputs.map(({ name }) => name),
    ).map((column, position) => (
      // oxlint-disable-next-line react/no-array-index-key
      <div class="column" key={position}>
        {column.map((step) => (
          <Step key={`${step.model_name} ${Object.values(step.output_map).join(" ")}`} step={step} />
        ))}
      </div>
    ))}
    <div class="column">
      <div class="node">
        <strong>response</strong>
        <span>{namesOf(outputs)}</span>
      </div>
    </div>
  </div>
)

const namesOf = (fields: ReadonlyArray<{ readonly name: string }>): string =>
  visible(fields.map(({ name }) => name).join(", "))

const Step = ({
  step: { model_name: name, input_map: inputs, output_map: outputs },
}: {
  readonly step: EnsembleStep
}) => (
  <div class="node">
    <span class="takes">{visible(Object.values(inputs).join(", "))}</span>
    <a href={link(["models", name])}>
      <ModelText text={name} />
    </a>
    <span class="gives">{visible(Object.values(outputs).join(", "))}</span>
  </div>
)

/** A response of a model: its outputs, and the parameters that it has. */
import type { Answer } from "../call/Output.ts"
import { JsonTree } from "./JsonTree.tsx"
import { OutputView } from "./OutputView.tsx"

export const AnswerView = ({ answer: { outputs, parameters } }: { readonly answer: Answer }) => (
  <>
    {outputs.map((output) => (
      <OutputView key={output.name} output={output} />
    ))}
    {Object.keys(parameters).length > 0 && <JsonTree name="parameters" value={parameters} />}
  </>
)

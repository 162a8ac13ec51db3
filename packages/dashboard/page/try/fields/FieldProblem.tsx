/** Why the value of a field cannot be sent. */
import type { Invalid } from "../Invalid.ts"

export const FieldProblem = ({ problem }: { readonly problem: Invalid | undefined }) => (
  <span class="field-problem" role="status">
    {problem === undefined ? "" : problem.message}
  </span>
)

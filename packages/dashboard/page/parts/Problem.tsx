/** An error in full, announced to screen readers. */
import type { Refusal } from "../api/Refusal.ts"
import { visible } from "./VisibleText.ts"

export const Problem = ({ title, refusal }: { readonly title: string; readonly refusal: Refusal }) => (
  <div class="problem" role="alert">
    <strong>{title}</strong> <span class="kind">({refusal.kind})</span>
    <pre>{visible(refusal.message)}</pre>
  </div>
)

/** An error of a request: its tag, status and text, and the fields of a declared error. */
import { Problem } from "../parts/Problem.tsx"
import type { Refusal } from "../api/Refusal.ts"
import { JsonTree } from "./answer/JsonTree.tsx"
import { visible } from "./answer/VisibleText.ts"
import { type Json, read } from "./json/Json.ts"
import { Refusal as RefusalClass } from "../api/Refusal.ts"

export const FailureView = ({ title, refusal }: { readonly title: string; readonly refusal: Refusal }) => {
  const { message, status, tag, detail } = refusal
  const fields = detail === undefined ? undefined : parsed(detail)
  return (
    <>
      <Problem title={title} refusal={new RefusalClass(visible(message), status, tag)} />
      {fields !== undefined && <JsonTree name="fields" value={fields} />}
    </>
  )
}

const parsed = (text: string): Json | undefined => {
  try {
    return read(text)
  } catch {
    return text
  }
}

/** An error of a request: its tag, status and text, and the fields of a declared error. */
import { Problem } from "../parts/Problem.tsx"
import type { Refusal } from "../api/Refusal.ts"
import { JsonTree } from "./answer/JsonTree.tsx"
import { type Json, read } from "./json/Json.ts"

export const FailureView = ({ title, refusal }: { readonly title: string; readonly refusal: Refusal }) => {
  const { detail } = refusal
  const fields = detail === undefined ? undefined : parsed(detail)
  return (
    <>
      <Problem title={title} refusal={refusal} />
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

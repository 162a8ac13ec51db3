/** Sends a request of an operation, and shows the answer. */
import { useState } from "preact/hooks"
import { send } from "../api/http.ts"
import { Problem } from "../parts/Problem.tsx"
import { useTask } from "../parts/useTask.ts"
import { type Document, type Entry, example } from "./Document.ts"

export interface TryOperationProps {
  readonly document: Document
  readonly entry: Entry
}

interface Answer {
  readonly status: string
  readonly text: string
}

/** Characters of an answer that are shown. */
const maxAnswer = 100_000

export const TryOperation = ({ document, entry: { method, path, operation } }: TryOperationProps) => {
  const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = ""]) => name)
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const media = operation.requestBody?.content?.["application/json"]
  const [body, setBody] = useState(() =>
    media === undefined ? "" : JSON.stringify(media.example ?? example(document, media.schema), null, 2),
  )
  const [answer, setAnswer] = useState<Answer>()
  const { isRunning, problem, run } = useTask()
  const submit = () =>
    run(async () => {
      setAnswer(undefined)
      const url = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""))
      const init = media === undefined ? { method } : { method, body, headers: { "content-type": "application/json" } }
      const response = await send(url, init)
      setAnswer({ status: `${response.status} ${response.statusText}`, text: await textOf(response) })
    })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {names.map((name) => (
        <label key={name}>
          {name}
          <input
            required
            value={values[name] ?? ""}
            onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
          />
        </label>
      ))}
      {media !== undefined && (
        <label>
          Body
          <textarea rows={8} spellcheck={false} value={body} onInput={(event) => setBody(event.currentTarget.value)} />
        </label>
      )}
      <p class="buttons">
        <button type="submit" disabled={isRunning}>
          {isRunning ? "Sending…" : "Send"}
        </button>
      </p>
      {problem !== undefined && <Problem title="The server refused the request." refusal={problem} />}
      {answer !== undefined && (
        <div role="status">
          <strong>{answer.status}</strong>
          <pre tabIndex={0}>{answer.text}</pre>
        </div>
      )}
    </form>
  )
}

const textOf = async (response: Response): Promise<string> => {
  const text = await response.text()
  const shown = response.headers.get("content-type")?.startsWith("application/json") === true ? indented(text) : text
  return shown.length > maxAnswer ? `${shown.slice(0, maxAnswer)}…` : shown
}

const indented = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

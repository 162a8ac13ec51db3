/** Sends a request of an operation, and shows the answer as it arrives: a stream may have no end. */
import { useEffect, useRef, useState } from "preact/hooks"
import { send } from "../api/http.ts"
import { link } from "../app/route.ts"
import { Problem } from "../parts/Problem.tsx"
import { useTask } from "../parts/useTask.ts"
import { visible } from "../parts/VisibleText.ts"
import type { Document, Entry, Operation } from "./Document.ts"
import { example } from "./Example.ts"
import { indented, readText } from "./readText.ts"

export interface TryOperationProps {
  readonly document: Document
  readonly entry: Entry
}

interface Answer {
  readonly status: string
  readonly text: string
}

export const TryOperation = ({ document, entry: { method, path, operation } }: TryOperationProps) => {
  const names = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = ""]) => name)
  const [values, setValues] = useState<Readonly<Record<string, string>>>({})
  const media = operation.requestBody?.content?.["application/json"]
  const [body, setBody] = useState(() =>
    media === undefined ? "" : JSON.stringify(media.example ?? example(document, media.schema), null, 2),
  )
  const [answer, setAnswer] = useState<Answer>()
  const { isRunning, problem, run } = useTask()
  const controller = useRef<AbortController>(undefined)
  useEffect(() => () => controller.current?.abort(), [])
  const submit = () =>
    run(async () => {
      setAnswer(undefined)
      const abort = new AbortController()
      controller.current = abort
      const url = path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""))
      const content = media === undefined ? {} : { body, headers: { "content-type": "application/json" } }
      try {
        const response = await send(url, { method, signal: abort.signal, ...content })
        const status = `${response.status} ${response.statusText}`
        const text = await readText(response, (read) => setAnswer({ status, text: read }))
        setAnswer({ status, text: indented(response, text) })
      } catch (error) {
        if (!abort.signal.aborted) throw error
      }
    })
  if (operation.requestBody !== undefined && media === undefined) return <BinaryOnly operation={operation} />
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
        <button type="button" class="plain" disabled={!isRunning} onClick={() => controller.current?.abort()}>
          Stop
        </button>
      </p>
      {problem !== undefined && <Problem title="The server refused the request." refusal={problem} />}
      {answer !== undefined && (
        <>
          <strong role="status">{answer.status}</strong>
          <pre tabIndex={0}>{visible(answer.text)}</pre>
        </>
      )}
    </form>
  )
}

const BinaryOnly = ({ operation }: { readonly operation: Operation }) => {
  const model = operation["x-nereid-model"]
  return (
    <p>
      The body is binary.{" "}
      {model !== undefined && <a href={link(["models", model.name, model.version])}>Try the model</a>}
    </p>
  )
}

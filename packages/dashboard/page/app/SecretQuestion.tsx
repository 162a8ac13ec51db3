/** Asks for the header of a restricted API. */
import { useState } from "preact/hooks"
import { Dialog } from "../parts/Dialog.tsx"
import { question, type Question } from "../api/secrets.ts"

export const SecretQuestion = () => {
  const asked = question.value
  return asked === undefined ? null : <Ask key={asked.header} question={asked} />
}

const Ask = ({ question: { header, isWrong, answer } }: { readonly question: Question }) => {
  const [value, setValue] = useState("")
  return (
    <Dialog title="Restricted API" onClose={() => answer(undefined)}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          answer(value)
        }}
      >
        <p>
          {isWrong ? "The server does not accept this value. " : ""}
          The server restricts this API to requests with the header <code>{header}</code>. This tab keeps the value
          until you close it.
        </p>
        <label>
          Value of {header}
          <input type="password" autocomplete="off" value={value} onInput={(e) => setValue(e.currentTarget.value)} />
        </label>
        <p class="buttons">
          <button type="submit" disabled={value === ""}>
            Use
          </button>
          <button type="button" class="plain" onClick={() => answer(undefined)}>
            Go on without
          </button>
        </p>
      </form>
    </Dialog>
  )
}

/** The request of the form as a program to copy: curl, TypeScript or Python. */
import { useEffect, useMemo, useState } from "preact/hooks"
import type { Attempt } from "./call/Attempt.ts"
import * as Curl from "./copy/Curl.ts"
import * as Python from "./copy/Python.ts"
import type { Snippet, SnippetFile } from "./copy/Snippet.ts"
import * as TypeScript from "./copy/TypeScript.ts"
import { attempt as attempted, Invalid } from "./Invalid.ts"

const languages = { curl: Curl.make, TypeScript: TypeScript.make, Python: Python.make }

type Language = keyof typeof languages

const names: ReadonlyArray<Language> = ["curl", "TypeScript", "Python"]

export const CopyAs = ({ attempt }: { readonly attempt: Attempt | Invalid }) => {
  const [language, setLanguage] = useState<Language>()
  return (
    <section aria-label="Copy as">
      <div class="row" role="group" aria-label="Copy as">
        <span class="quiet">Copy as</span>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            class="plain"
            aria-expanded={language === name}
            onClick={() => setLanguage(language === name ? undefined : name)}
          >
            {name}
          </button>
        ))}
      </div>
      {language !== undefined && <Program attempt={attempt} language={language} />}
    </section>
  )
}

const Program = ({ attempt, language }: { readonly attempt: Attempt | Invalid; readonly language: Language }) => {
  const [note, setNote] = useState("")
  const snippet = useMemo(
    (): Snippet | Invalid =>
      attempt instanceof Invalid ? attempt : attempted(() => languages[language](attempt, location.origin)),
    [attempt, language],
  )
  useEffect(() => setNote(""), [snippet])
  if (snippet instanceof Invalid) return <p role="status">There is no program yet: {snippet.message}.</p>
  const copy = () =>
    // The clipboard exists in secure contexts only.
    (navigator.clipboard?.writeText(snippet.text) ?? Promise.reject(new Error("no clipboard"))).then(
      () => setNote("Copied."),
      () => setNote("The browser does not allow it. Select the text, and copy it."),
    )
  return (
    <>
      <pre class="program" tabIndex={0} aria-label={`Program in ${language}`}>
        {snippet.text}
      </pre>
      {snippet.files.length > 0 && (
        <p>
          It reads{" "}
          {snippet.files.map((file) => (
            <SavedFile key={file.name} file={file} />
          ))}
          beside it.
        </p>
      )}
      <p class="row">
        <button type="button" onClick={() => void copy()}>
          Copy
        </button>
        <span role="status">{note}</span>
      </p>
    </>
  )
}

const SavedFile = ({ file: { name, bytes } }: { readonly file: SnippetFile }) => {
  const url = useMemo(() => URL.createObjectURL(new Blob([bytes])), [bytes])
  useEffect(() => () => URL.revokeObjectURL(url), [url])
  return (
    <>
      <a href={url} download={name}>
        {name}
      </a>{" "}
    </>
  )
}

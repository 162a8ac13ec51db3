/** One element of BYTES: a text, or a file such as a picture. */
import { useEffect, useMemo, useState } from "preact/hooks"
import type { Field } from "../../api/Model.ts"
import { pictureType } from "../answer/PictureType.ts"
import { Invalid } from "../Invalid.ts"
import { ofBytes, ofText } from "../tensor/Tensor.ts"
import { defaultText } from "./defaults.ts"
import { type EntryProps, useEntry } from "./Entry.ts"
import { FieldProblem } from "./FieldProblem.tsx"
import { FileZone } from "./FileZone.tsx"
import { ModelText } from "../../parts/ModelText.tsx"

/** Largest file, in bytes: the server's default for a request. */
const maxSize = 64 * 1024 * 1024

interface Loaded {
  readonly name: string
  readonly bytes: Uint8Array<ArrayBuffer>
}

export const BytesInput = ({ field, onEntry }: { readonly field: Field } & EntryProps) => {
  const [text, setText] = useState(() => defaultText(field))
  const [file, setFile] = useState<Loaded | Invalid>()
  const problem = useEntry(onEntry, () => {
    if (file instanceof Invalid) throw file
    return file === undefined ? ofText(text) : { tensor: ofBytes(file.bytes), fileName: file.name }
  }, [text, file])
  const load = (chosen: File) => {
    if (chosen.size > maxSize) return setFile(new Invalid(`${chosen.name} is larger than ${maxSize} bytes`))
    chosen.arrayBuffer().then(
      (buffer) => setFile({ name: chosen.name, bytes: new Uint8Array(buffer) }),
      () => setFile(new Invalid(`${chosen.name} cannot be read`)),
    )
  }
  return (
    <>
      <FileZone title={`File for ${field.name}`} hasCamera onFile={load} />
      {file === undefined ? (
        <label>
          Or a text for <ModelText text={field.name} />
          <textarea rows={2} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      ) : (
        <p class="chosen">
          {!(file instanceof Invalid) && <Chosen file={file} />}
          <button type="button" class="plain" onClick={() => setFile(undefined)}>
            Remove the file
          </button>
        </p>
      )}
      <FieldProblem problem={problem} />
    </>
  )
}

const Chosen = ({ file: { name, bytes } }: { readonly file: Loaded }) => {
  const type = pictureType(bytes)
  const url = useMemo(
    () => (type === undefined ? undefined : URL.createObjectURL(new Blob([bytes], { type }))),
    [bytes],
  )
  useEffect(() => () => void (url !== undefined && URL.revokeObjectURL(url)), [url])
  return (
    <>
      {url !== undefined && <img class="thumbnail" src={url} alt={`Picture ${name}`} />}
      <span>
        <bdi>{name}</bdi> ({bytes.length.toLocaleString("en")} bytes)
      </span>
    </>
  )
}

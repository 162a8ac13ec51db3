/** An element of BYTES as what it is: a picture, JSON, a text, or bytes. */
import { useEffect, useMemo } from "preact/hooks"
import { isArray, isObject, type Json, read } from "../json/Json.ts"
import { textOf } from "../tensor/Tensor.ts"
import { JsonTree } from "./JsonTree.tsx"
import { pictureType } from "./PictureType.ts"
import { clipped, visible } from "../../parts/VisibleText.ts"

export interface BytesViewProps {
  readonly title: string
  readonly bytes: Uint8Array
}

type Content =
  | { readonly kind: "picture"; readonly type: string }
  | { readonly kind: "json"; readonly json: Json }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes" }

export const BytesView = ({ title, bytes }: BytesViewProps) => {
  const content = useMemo(() => contentOf(bytes), [bytes])
  switch (content.kind) {
    case "picture":
      return <Picture title={title} bytes={bytes} type={content.type} />
    case "json":
      return <JsonTree value={content.json} />
    case "text":
      return <Text text={content.text} />
    case "bytes":
      return <Hexadecimal title={title} bytes={bytes} />
  }
}

const contentOf = (bytes: Uint8Array): Content => {
  const type = pictureType(bytes)
  if (type !== undefined) return { kind: "picture", type }
  const text = textOf(bytes)
  if (text === undefined) return { kind: "bytes" }
  const json = jsonIn(text)
  return json === undefined ? { kind: "text", text } : { kind: "json", json }
}

export const Text = ({ text }: { readonly text: string }) => {
  const [start, omitted] = clipped(text)
  return (
    <>
      <pre class="text" dir="auto" tabIndex={0}>
        {visible(start)}
      </pre>
      {omitted > 0 && <p class="quiet">{omitted.toLocaleString("en")} more characters are not shown.</p>}
    </>
  )
}

/** Objects and lists; a plain number or word is rather a text. */
const jsonIn = (text: string): Json | undefined => {
  if (!/^\s*[[{]/.test(text)) return undefined
  try {
    const json = read(text)
    return isArray(json) || isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

const useUrl = (bytes: Uint8Array, type: string): string => {
  const url = useMemo(() => URL.createObjectURL(new Blob([bytes.slice()], { type })), [bytes, type])
  useEffect(() => () => URL.revokeObjectURL(url), [url])
  return url
}

const Picture = ({ title, bytes, type }: BytesViewProps & { readonly type: string }) => (
  <figure>
    <img class="answer-picture" src={useUrl(bytes, type)} alt={`Picture in ${title}`} />
    <figcaption class="quiet">
      {type}, {bytes.length.toLocaleString("en")} bytes
    </figcaption>
  </figure>
)

/** Bytes that are shown. */
const maxBytes = 512

const Hexadecimal = ({ title, bytes }: BytesViewProps) => {
  const url = useUrl(bytes, "application/octet-stream")
  const pairs = Array.from(bytes.subarray(0, maxBytes), (byte) => byte.toString(16).padStart(2, "0"))
  return (
    <>
      <pre tabIndex={0}>
        {pairs.join(" ")}
        {bytes.length > maxBytes && " …"}
      </pre>
      <p class="quiet">
        {bytes.length.toLocaleString("en")} bytes.{" "}
        <a href={url} download={`${title.replaceAll(/[^\w.-]/g, "_")}.bin`}>
          Save them
        </a>
      </p>
    </>
  )
}

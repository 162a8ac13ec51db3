/** A tensor of any shape: drawn, a picture, written, a `.npy` file, or filled. */
import { useEffect, useState } from "preact/hooks"
import { type Field, typeOf } from "../../api/Model.ts"
import { Invalid } from "../Invalid.ts"
import { isNumeric } from "../tensor/Datatype.ts"
import { constant, random, usualRange } from "../tensor/Fill.ts"
import * as NumpyFile from "../tensor/NumpyFile.ts"
import { layoutOf } from "../tensor/PictureLayout.ts"
import { isVariable } from "../tensor/Shape.ts"
import { maxElements } from "../tensor/Tensor.ts"
import { read } from "../tensor/ValueText.ts"
import { startingValues, usualExtent } from "./defaults.ts"
import { type EntryProps, useEntry } from "./Entry.ts"
import { ExtentFields } from "./ExtentFields.tsx"
import { dimOf, type Extents } from "./Extents.ts"
import { FieldProblem } from "./FieldProblem.tsx"
import { FileZone } from "./FileZone.tsx"
import { DrawingSource, FileSource, usualSide } from "./PictureSource.tsx"
import { ModelText } from "../../parts/ModelText.tsx"

export interface TensorInputProps extends EntryProps {
  readonly field: Field
  readonly extents: Extents
}

interface SourceProps extends TensorInputProps {
  readonly dropped: File | undefined
}

const sources = {
  drawing: "Drawing",
  picture: "Picture",
  values: "Values",
  npy: ".npy file",
  zeros: "Zeros",
  random: "Random values",
}

type Source = keyof typeof sources

/** Drawings of more pixels would be slow to make. */
const maxDrawn = 1_024

const sourcesOf = ({ datatype, dims }: Field): ReadonlyArray<Source> => {
  const layout = layoutOf(datatype, dims)
  const { width = usualSide, height = usualSide } = layout ?? {}
  return [
    ...(layout !== undefined && Math.max(width, height) <= maxDrawn ? ["drawing" as const] : []),
    ...(layout !== undefined ? ["picture" as const] : []),
    "values",
    "npy",
    "zeros",
    "random",
  ]
}

const firstSource = (field: Field): Source => {
  const layout = layoutOf(field.datatype, field.dims)
  if (layout?.channels === 3) return "picture"
  if (layout !== undefined) return "drawing"
  return startingValues(field) === undefined ? "zeros" : "values"
}

export const TensorInput = ({ field, extents, onEntry }: TensorInputProps) => {
  const [source, setSource] = useState<Source>(() => firstSource(field))
  const layout = layoutOf(field.datatype, field.dims)
  const fallback = layout === undefined ? usualExtent : usualSide
  const hasExtents = source !== "values" && source !== "npy"
  /** A file that was dropped beside the places for files. */
  const [dropped, setDropped] = useState<File>()
  const drop = (event: DragEvent) => {
    const file = event.dataTransfer?.files[0]
    const wanted = file?.name.endsWith(".npy") ? "npy" : layout === undefined ? undefined : "picture"
    if (file === undefined || wanted === undefined) return
    event.preventDefault()
    setSource(wanted)
    setDropped(file)
  }
  const props = { field, extents, onEntry, dropped }
  return (
    <fieldset onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      <legend>
        <ModelText text={field.name} /> <code class="quiet">{typeOf(field)}</code>
      </legend>
      <div class="row">
        <label class="short">
          Source
          <select
            aria-label={`Source of ${field.name}`}
            value={source}
            onChange={(event) =>
              setSource(sourcesOf(field).find((one) => one === event.currentTarget.value) ?? "zeros")
            }
          >
            {sourcesOf(field).map((one) => (
              <option key={one} value={one}>
                {sources[one]}
              </option>
            ))}
          </select>
        </label>
        {hasExtents && <ExtentFields field={field} extents={extents} fallback={fallback} />}
      </div>
      {source === "drawing" && layout !== undefined && <DrawingSource {...props} layout={layout} />}
      {source === "picture" && layout !== undefined && <FileSource {...props} layout={layout} />}
      {source === "values" && <ValuesSource {...props} />}
      {source === "npy" && <NumpySource {...props} />}
      {source === "zeros" && <ZeroSource {...props} fallback={fallback} />}
      {source === "random" && <RandomSource {...props} fallback={fallback} />}
    </fieldset>
  )
}

const ValuesSource = ({ field, onEntry }: SourceProps) => {
  const [text, setText] = useState(() => startingValues(field) ?? "")
  const { name, datatype, dims } = field
  const problem = useEntry(onEntry, () => read(text, datatype, dims), [text])
  const isBytes = !isNumeric(datatype)
  return (
    <label>
      <span class="quiet">{isBytes ? "One element a line, or JSON" : "Numbers, or nested lists as JSON"}</span>
      <textarea
        aria-label={`Values of ${name}`}
        rows={3}
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <FieldProblem problem={problem} />
    </label>
  )
}

/** Largest `.npy` file, in bytes. */
const maxFile = 8 * maxElements + 65_536

const NumpySource = ({ field, onEntry, dropped }: SourceProps) => {
  const [file, setFile] = useState<{ readonly name: string; readonly bytes: Uint8Array } | Invalid>()
  const problem = useEntry(onEntry, () => {
    if (file === undefined) throw new Invalid("no file has been chosen")
    if (file instanceof Invalid) throw file
    return NumpyFile.read(file.bytes, field.datatype, field.dims)
  }, [file])
  const load = (chosen: File) => {
    if (chosen.size > maxFile) return setFile(new Invalid(`the file is larger than ${maxFile} bytes`))
    chosen.arrayBuffer().then(
      (buffer) => setFile({ name: chosen.name, bytes: new Uint8Array(buffer) }),
      () => setFile(new Invalid("the file cannot be read")),
    )
  }
  useEffect(() => {
    if (dropped !== undefined) load(dropped)
  }, [dropped])
  return (
    <>
      <FileZone title={`.npy file for ${field.name}`} accept=".npy" onFile={load} />
      {file !== undefined && !(file instanceof Invalid) && (
        <p class="chosen">
          <bdi>{file.name}</bdi>
        </p>
      )}
      <FieldProblem problem={problem} />
    </>
  )
}

type FillProps = SourceProps & { readonly fallback: number }

const shapeOf = ({ field: { name, dims }, extents, fallback }: FillProps): ReadonlyArray<number> =>
  dims.map((dim, axis) => (isVariable(dim) ? extents.get(dimOf(name, dim, axis).key, fallback) : Number(dim)))

const ZeroSource = (props: FillProps) => {
  const shape = shapeOf(props)
  const problem = useEntry(props.onEntry, () => constant(props.field.datatype, shape, 0), [shape.join()])
  return <FieldProblem problem={problem} />
}

const RandomSource = (props: FillProps) => {
  const { field, onEntry } = props
  const usual = usualRange(field.datatype)
  const [seed, setSeed] = useState(1)
  const [from, setFrom] = useState(usual.from)
  const [to, setTo] = useState(usual.to)
  const shape = shapeOf(props)
  const problem = useEntry(onEntry, () => {
    if (!Number.isFinite(from) || !Number.isFinite(to) || from > to) throw new Invalid("the range has no values")
    return random(field.datatype, shape, seed, { from, to })
  }, [shape.join(), seed, from, to])
  return (
    <div class="row">
      {isNumeric(field.datatype) && (
        <>
          <label class="short">
            From
            <input type="number" step="any" value={from} onInput={(e) => setFrom(e.currentTarget.valueAsNumber)} />
          </label>
          <label class="short">
            To
            <input type="number" step="any" value={to} onInput={(e) => setTo(e.currentTarget.valueAsNumber)} />
          </label>
        </>
      )}
      <button type="button" class="plain" onClick={() => setSeed(seed + 1)}>
        Other values
      </button>
      <FieldProblem problem={problem} />
    </div>
  )
}

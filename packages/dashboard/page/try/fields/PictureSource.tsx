/** A tensor that is a picture: drawn here, or the file of a picture at the size that the model needs. */
import { useEffect, useMemo, useState } from "preact/hooks"
import type { Field } from "../../api/Model.ts"
import { attempt, Invalid, valid } from "../Invalid.ts"
import { centred, type Grey, resized, toRgba } from "../tensor/Drawing.ts"
import { type PictureLayout, type Pixels, type Scale, scales, scalesOf, toTensor } from "../tensor/PictureLayout.ts"
import { checkCount } from "../tensor/Tensor.ts"
import { DrawingPad } from "./DrawingPad.tsx"
import { type EntryProps, useEntry } from "./Entry.ts"
import { dimOf, type Extents } from "./Extents.ts"
import { FieldProblem } from "./FieldProblem.tsx"
import { FileZone } from "./FileZone.tsx"
import { type Fit, fits, loadPicture, resize } from "./loadPicture.ts"
import { Preview } from "./Preview.tsx"

export interface PictureProps extends EntryProps {
  readonly field: Field
  /** A file that was dropped beside the place for it. */
  readonly dropped: File | undefined
  readonly layout: PictureLayout
  readonly extents: Extents
}

/** Rows and columns of pictures of any size. */
export const usualSide = 224

/** The size of the picture that the tensor has. */
export const sizeOf = ({ field, layout, extents }: Omit<PictureProps, "onEntry" | "dropped">) => {
  const { dims } = field
  const first = dims.length === 2 ? 0 : dims.length - (layout.isInterleaved ? 3 : 2)
  const extentOf = (axis: number) => extents.get(dimOf(field.name, dims[axis], axis).key, usualSide)
  return { height: layout.height ?? extentOf(first), width: layout.width ?? extentOf(first + 1) }
}

export const DrawingSource = (props: PictureProps) => {
  const { field, layout, onEntry } = props
  const { width, height } = sizeOf(props)
  const [drawing, setDrawing] = useState<Grey>()
  const [isCentred, setCentred] = useState(width === 28 && height === 28)
  const [scale, setScale] = useState<Scale>(scalesOf(field.datatype)[0] ?? "unit")
  const [isInverted, setInverted] = useState(false)
  const picture = useMemo(
    () =>
      attempt((): Pixels => {
        checkSize(width, height)
        const grey = isCentred && drawing !== undefined ? centred : resized
        return { width, height, data: toRgba(grey(drawing ?? empty, width, height)) }
      }),
    [drawing, isCentred, width, height],
  )
  const problem = useEntry(
    onEntry,
    () => toTensor(valid(picture), field.datatype, field.dims, layout, { scale, isInverted }),
    [picture, scale, isInverted],
  )
  return (
    <>
      <div class="side-by-side">
        <DrawingPad title={`Drawing of ${field.name}`} width={width} height={height} onDrawing={setDrawing} />
        {!(picture instanceof Invalid) && <Seen field={field} picture={picture} />}
      </div>
      <label class="check">
        <input type="checkbox" checked={isCentred} onInput={(event) => setCentred(event.currentTarget.checked)} />
        Centre it, as the digits of MNIST are
      </label>
      <ScaleFields
        field={field}
        scale={scale}
        onScale={setScale}
        isInverted={isInverted}
        onInverted={setInverted}
        inverted="Black on white"
      />
      <FieldProblem problem={problem} />
    </>
  )
}

export const FileSource = (props: PictureProps) => {
  const { field, layout, onEntry, dropped } = props
  const { width, height } = sizeOf(props)
  const [bitmap, setBitmap] = useState<ImageBitmap | Invalid>()
  const [fit, setFit] = useState<Fit>("cover")
  const [scale, setScale] = useState<Scale>(scalesOf(field.datatype)[0] ?? "unit")
  const [isInverted, setInverted] = useState(false)
  const picture = useMemo(
    () =>
      attempt((): Pixels => {
        if (bitmap === undefined) throw new Invalid("no picture has been chosen")
        checkSize(width, height)
        return resize(valid(bitmap), width, height, fit)
      }),
    [bitmap, width, height, fit],
  )
  const problem = useEntry(
    onEntry,
    () => toTensor(valid(picture), field.datatype, field.dims, layout, { scale, isInverted }),
    [picture, scale, isInverted],
  )
  const load = (file: File) =>
    loadPicture(file).then(setBitmap, (error: unknown) =>
      setBitmap(error instanceof Invalid ? error : new Invalid("the picture cannot be read")),
    )
  useEffect(() => {
    if (dropped !== undefined) void load(dropped)
  }, [dropped])
  return (
    <>
      <FileZone title={`Picture for ${field.name}`} accept="image/*" hasCamera onFile={(file) => void load(file)} />
      {!(picture instanceof Invalid) && <Seen field={field} picture={picture} />}
      <div class="row">
        <label class="short">
          Size
          <select value={fit} onChange={(event) => setFit(keyIn(fits, event.currentTarget.value, "cover"))}>
            {Object.entries(fits).map(([name, title]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </label>
      </div>
      <ScaleFields
        field={field}
        scale={scale}
        onScale={setScale}
        isInverted={isInverted}
        onInverted={setInverted}
        inverted="Invert the colours"
      />
      <FieldProblem problem={problem} />
    </>
  )
}

const empty: Grey = { width: 1, height: 1, data: [0] }

/** Largest side, in pixels, that all browsers have canvases for. */
const maxSide = 8_192

const checkSize = (width: number, height: number): void => {
  if (width < 1 || height < 1) throw new Invalid("a picture needs at least one row and one column")
  if (width > maxSide || height > maxSide) throw new Invalid(`a picture has at most ${maxSide} rows and columns`)
  checkCount([width, height])
}

const Seen = ({ field, picture }: { readonly field: Field; readonly picture: Pixels }) => {
  const { width, height, data } = picture
  const pixels = useMemo(() => Uint8ClampedArray.from(data), [data])
  return (
    <figure>
      <Preview title={`${field.name} as the model gets it`} width={width} height={height} data={pixels} />
      <figcaption class="quiet">
        {width} × {height}, as the model gets it
      </figcaption>
    </figure>
  )
}

interface ScaleFieldsProps {
  readonly field: Field
  readonly scale: Scale
  readonly onScale: (scale: Scale) => void
  readonly isInverted: boolean
  readonly onInverted: (isInverted: boolean) => void
  readonly inverted: string
}

const ScaleFields = ({ field, scale, onScale, isInverted, onInverted, inverted }: ScaleFieldsProps) => (
  <div class="row">
    <label class="short">
      Values
      <select value={scale} onChange={(event) => onScale(keyIn(scales, event.currentTarget.value, "unit"))}>
        {scalesOf(field.datatype).map((name) => (
          <option key={name} value={name}>
            {scales[name]}
          </option>
        ))}
      </select>
    </label>
    <label class="check">
      <input type="checkbox" checked={isInverted} onInput={(event) => onInverted(event.currentTarget.checked)} />
      {inverted}
    </label>
  </div>
)

const keyIn = <K extends string>(record: Readonly<Record<K, string>>, text: string, fallback: K): K => {
  const isKey = (key: string): key is K => Object.hasOwn(record, key)
  return isKey(text) ? text : fallback
}

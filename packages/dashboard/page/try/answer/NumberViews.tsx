/** Numbers of an output: in a table, as a heat map or picture, or in full; with a histogram. */
import { useMemo } from "preact/hooks"
import { Preview } from "../fields/Preview.tsx"
import { kindOf } from "../tensor/Datatype.ts"
import { layoutOf, toPixels } from "../tensor/PictureLayout.ts"
import { elementCount, numbersOf, type Tensor } from "../tensor/Tensor.ts"
import { elementText } from "../tensor/ValueText.ts"
import { Bars } from "./Bars.tsx"
import { pixelsOf } from "./HeatMapColours.ts"
import { histogramOf, short, type Spread, spreadOf } from "./Range.ts"

export interface NumberViewProps {
  readonly title: string
  readonly tensor: Tensor
}

/** Rows of a table, and values of a list, that are shown. */
const maxRows = 100
const maxValues = 1_000

export const Table = ({ title, tensor }: NumberViewProps) => {
  const { datatype, data, shape } = tensor
  const [rows = 0, columns = 0] = shape.filter((extent) => extent !== 1)
  return (
    <>
      <table>
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Row</th>
            {Array.from({ length: columns }, (_, column) => (
              <th key={column} scope="col" class="number">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: Math.min(rows, maxRows) }, (_, row) => (
            <tr key={row}>
              <th scope="row">{row}</th>
              {Array.from({ length: columns }, (_, column) => (
                <td key={column} class="number">
                  {elementText(datatype, data, row * columns + column)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows > maxRows && <p class="quiet">{rows - maxRows} more rows are not shown.</p>}
    </>
  )
}

export const Values = ({ title, tensor: { datatype, shape, data } }: NumberViewProps) => {
  const count = elementCount(shape)
  if (count === 0) return <p class="quiet">No values: the shape is [{shape.join(", ")}].</p>
  const texts = Array.from({ length: Math.min(count, maxValues) }, (_, index) => elementText(datatype, data, index))
  return (
    <pre tabIndex={0} aria-label={`Values of ${title}`}>
      {texts.join(" ")}
      {count > maxValues && ` … (${count} values)`}
    </pre>
  )
}

export const HeatMap = ({ title, tensor }: NumberViewProps) => {
  const { shape } = tensor
  const columns = shape.at(-1) ?? 1
  const rows = columns === 0 ? 0 : elementCount(shape) / columns
  const numbers = useMemo(() => numbersOf(tensor), [tensor])
  const spread = useMemo(() => spreadOf(numbers), [numbers])
  const range = [spread.least, spread.most] as const
  const { width, height, data } = useMemo(() => pixelsOf(numbers, rows, columns, range), [numbers])
  return (
    <figure class="heat-map">
      <Preview title={`Heat map of ${title}, ${rangeText(spread)}`} width={width} height={height} data={data} />
      <figcaption class="quiet">
        {rows} rows, {columns} columns; dark is {short(spread.least)}, bright is {short(spread.most)}
      </figcaption>
    </figure>
  )
}

const rangeText = ({ least, most }: Spread): string => `from ${short(least)} to ${short(most)}`

/** The usual range of pictures that has all values; otherwise the smallest value is black, and the largest white. */
const brightnessOf = ({ least, most }: Spread, isFloat: boolean): readonly [number, number] => {
  if (!isFloat || (least >= 0 && most > 2 && most <= 255)) return least >= 0 && most <= 255 ? [0, 255] : [least, most]
  if (least >= 0 && most <= 1) return [0, 1]
  return least >= -1 && most <= 1 ? [-1, 1] : [least, most]
}

export const PictureView = ({ title, tensor }: NumberViewProps) => {
  const { datatype, shape } = tensor
  const layout = layoutOf(datatype, shape)
  const spread = useMemo(() => spreadOf(numbersOf(tensor)), [tensor])
  const { height = 0, width = 0 } = layout ?? {}
  const range = brightnessOf(spread, kindOf(datatype) === "float")
  const data = useMemo(
    () => layout && toPixels(numbersOf(tensor), layout, width, height, range),
    [tensor, range[0], range[1]],
  )
  if (data === undefined) return null
  return (
    <figure>
      <Preview title={`Picture of ${title}`} width={width} height={height} data={data} />
      <figcaption class="quiet">
        {width} × {height}; black is {short(range[0])}, white is {short(range[1])}
      </figcaption>
    </figure>
  )
}

const buckets = 40

/** Fewer values need no histogram. */
const leastValues = 17

export const Histogram = ({ title, tensor }: NumberViewProps) => {
  const numbers = useMemo(() => numbersOf(tensor), [tensor])
  const spread = useMemo(() => spreadOf(numbers), [numbers])
  if (numbers.length < leastValues) return null
  const { least, most, mean, notFinite } = spread
  return (
    <details>
      <summary>
        Histogram{" "}
        <span class="quiet">
          {numbers.length.toLocaleString("en")} values {rangeText(spread)}, mean {short(mean)}
          {notFinite > 0 && `, ${notFinite} not finite`}
        </span>
      </summary>
      {Number.isFinite(least) && (
        <Bars
          title={`Histogram of ${title}`}
          counts={histogramOf(numbers, spread, buckets)}
          from={short(least)}
          to={short(most)}
        />
      )}
    </details>
  )
}

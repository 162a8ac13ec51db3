/** An output of a model as what it is. */
import { useState } from "preact/hooks"
import type { Output } from "../call/Output.ts"
import { elementCount, isList, numbersOf, textOf } from "../tensor/Tensor.ts"
import { elementText } from "../tensor/ValueText.ts"
import { BarChart } from "./BarChart.tsx"
import { BytesView, Text } from "./BytesView.tsx"
import { Histogram, HeatMap, PictureView, Table, Values } from "./NumberViews.tsx"
import { type View, viewsOf } from "./Views.ts"
import { ModelText } from "../../parts/ModelText.tsx"
import { visible } from "../../parts/VisibleText.ts"

export const OutputView = ({ output }: { readonly output: Output }) => {
  const { name, tensor } = output
  const views = viewsOf(output)
  const [selected, setSelected] = useState<View>()
  const view = views.find((one) => one === selected) ?? views[0]
  return (
    <section class="output" aria-label={`Output ${name}`}>
      <div class="row">
        <h4>
          <ModelText text={name} />{" "}
          <code class="quiet">
            {tensor.datatype}[{tensor.shape.join(", ")}]
          </code>
        </h4>
        {views.length > 1 && (
          <select
            aria-label={`Show ${name} as`}
            value={view}
            onChange={(event) => setSelected(views.find((one) => one === event.currentTarget.value))}
          >
            {views.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        )}
      </div>
      <Content output={output} view={view} />
      {view !== "bytes" && <Histogram title={name} tensor={tensor} />}
    </section>
  )
}

const Content = ({ output, view }: { readonly output: Output; readonly view: View }) => {
  const { name, tensor, field } = output
  const props = { title: name, tensor }
  switch (view) {
    case "bytes":
      return <Elements output={output} />
    case "number":
      return <p class="figure">{elementText(tensor.datatype, tensor.data, 0)}</p>
    case "label": {
      const index = Number(numbersOf(tensor)[0])
      const label = field?.labels[index]
      return (
        <p class="figure">
          <bdi>{label === undefined ? index : visible(label)}</bdi>
          {label !== undefined && <small class="quiet"> {index}</small>}
        </p>
      )
    }
    case "classes":
      return <BarChart title={name} scores={numbersOf(tensor)} labels={field?.labels ?? []} />
    case "table":
      return <Table {...props} />
    case "heat map":
      return <HeatMap {...props} />
    case "picture":
      return <PictureView {...props} />
    case "values":
      return <Values {...props} />
  }
}

/** Elements of BYTES that are shown. */
const maxElements = 50

const Elements = ({ output: { name, tensor, field } }: { readonly output: Output }) => {
  const { data, shape } = tensor
  if (!isList(data)) return null
  const [only] = data
  if (data.length === 1 && only !== undefined) {
    const text = field?.form === "text" ? textOf(only) : undefined
    return text === undefined ? <BytesView title={name} bytes={only} /> : <Text text={text} />
  }
  if (elementCount(shape) === 0) return <p class="quiet">No values: the shape is [{shape.join(", ")}].</p>
  return (
    <>
      <ol start={0} class="elements">
        {data.slice(0, maxElements).map((bytes, index) => (
          <li key={index}>
            <BytesView title={`${name} ${index}`} bytes={bytes} />
          </li>
        ))}
      </ol>
      {data.length > maxElements && <p class="quiet">{data.length - maxElements} more elements are not shown.</p>}
    </>
  )
}

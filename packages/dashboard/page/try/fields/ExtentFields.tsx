/** Number fields for the variable dims of an input. */
import type { Field } from "../../api/Model.ts"
import { type Extents, variableDims } from "./Extents.ts"

export interface ExtentFieldsProps {
  readonly field: Field
  readonly extents: Extents
  readonly fallback: number
}

export const ExtentFields = ({ field, extents, fallback }: ExtentFieldsProps) => (
  <>
    {[...new Map(variableDims(field).map((dim) => [dim.key, dim])).values()].map(({ key, title }) => (
      <label key={key} class="short">
        {title}
        <input
          type="number"
          min={0}
          step={1}
          value={extents.get(key, fallback)}
          onInput={(event) => {
            const extent = event.currentTarget.valueAsNumber
            if (Number.isSafeInteger(extent) && extent >= 0) extents.set(key, extent)
          }}
        />
      </label>
    ))}
  </>
)

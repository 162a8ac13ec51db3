/** The ways to show an output, by its datatype, shape and declaration. */
import type { Output } from "../call/Output.ts"
import { isNumeric, kindOf } from "../tensor/Datatype.ts"
import { layoutOf } from "../tensor/PictureLayout.ts"
import { isVariable } from "../tensor/Shape.ts"
import { elementCount } from "../tensor/Tensor.ts"

export type View = "bytes" | "number" | "label" | "classes" | "table" | "heat map" | "picture" | "values"

/** Most classes of a bar chart. */
export const maxClasses = 1_000

/** Most columns of a table. */
export const maxColumns = 24

/** The views that an output has, the best first. */
export const viewsOf = ({ tensor, field }: Output): readonly [View, ...Array<View>] => {
  const { datatype, shape } = tensor
  if (!isNumeric(datatype)) return ["bytes"]
  const count = elementCount(shape)
  const labels = field?.labels ?? []
  if (count === 1) return field?.form === "label" || labels.length > 1 ? ["label"] : ["number"]
  if (count === 0) return ["values"]
  const extents = shape.filter((extent) => extent !== 1)
  if (extents.length <= 1) {
    const isFixed = field?.dims.every((dim) => !isVariable(dim)) === true
    const isClasses = labels.length === count || (kindOf(datatype) === "float" && isFixed)
    return isClasses && count <= maxClasses ? ["classes", "values"] : ["values"]
  }
  const layout = layoutOf(datatype, shape)
  const [, columns = 0] = extents
  const isTable = extents.length === 2 && columns <= maxColumns
  if (layout !== undefined)
    return layout.channels === 3 ? ["picture", "heat map", "values"] : ["heat map", "picture", "values"]
  return isTable ? ["table", "heat map", "values"] : ["heat map", "values"]
}

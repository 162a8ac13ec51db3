/** The shapes of state tensors as a part of the key by which requests share a batch. */
import type { Sequencing } from "../model/Sequencing.ts"
import type { Request } from "../request/Request.ts"
import { sameRow, type Shape, type TypedTensor } from "../tensor/TypedTensor.ts"
import * as StateTensors from "./StateTensors.ts"

/**
 * Returns the key of a request: `groupKey` and the shapes of its state. A sequence without a state yet has the shapes of
 * the initial one.
 */
export const make = (
  { states }: Sequencing,
  groupKey: (request: Request) => string,
): ((request: Request) => string) => {
  const initial = states.map((state) => StateTensors.initial(state, true))
  // Most requests have the shapes of the one before them: its key is theirs.
  let group = ""
  let shapes: ReadonlyArray<Shape> = []
  let known: string | undefined
  return (request) => {
    const ownGroup = groupKey(request)
    const tensors = request.sequence?.state.tensors ?? initial
    if (known !== undefined && ownGroup === group && agree(shapes, tensors)) return known
    group = ownGroup
    shapes = tensors.map(({ shape }) => shape)
    return (known = group + keyOf(shapes))
  }
}

const agree = (shapes: ReadonlyArray<Shape>, tensors: ReadonlyArray<TypedTensor>): boolean => {
  for (let index = 0; index < shapes.length; index++) {
    const shape = tensors[index]?.shape
    if (shape === undefined || !sameRow(shapes[index] ?? [], shape)) return false
  }
  return true
}

const keyOf = (shapes: ReadonlyArray<Shape>): string => {
  let key = ""
  for (const [, ...row] of shapes) key += `;${row.join()}`
  return key
}

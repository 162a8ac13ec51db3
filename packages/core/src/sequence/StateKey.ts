/** The shapes of state tensors as a part of the key by which requests share a batch. */
import type { Sequencing } from "../model/Sequencing.ts"
import type { Request } from "../request/Request.ts"
import { sameRow, type Shape, type TypedTensor } from "../tensor/TypedTensor.ts"
import * as StateTensors from "./StateTensors.ts"

/** Makes the keys of shapes, apart from their first extent. Most states have the shapes of the one before: its key. */
export class ShapeKeys {
  #shapes: ReadonlyArray<Shape> | undefined
  #known = ""

  of(tensors: ReadonlyArray<TypedTensor>): string {
    if (this.#shapes !== undefined && agree(this.#shapes, tensors)) return this.#known
    this.#shapes = tensors.map(({ shape }) => shape)
    this.#known = ""
    for (const [, ...row] of this.#shapes) this.#known += `;${row.join()}`
    return this.#known
  }
}

/**
 * Returns the key of a request: `groupKey` and the shapes of its state. A sequence without a state has the shapes of
 * the initial one.
 */
export const make = (
  { states }: Sequencing,
  groupKey: (request: Request) => string,
): ((request: Request) => string) => {
  const initial = new ShapeKeys().of(states.map((state) => StateTensors.initial(state, true)))
  let group = ""
  let shape: string | undefined
  let known = ""
  return (request) => {
    const ownGroup = groupKey(request)
    const ownShape = request.sequence?.state.shapeKey ?? initial
    if (ownShape === shape && ownGroup === group) return known
    group = ownGroup
    shape = ownShape
    return (known = group + shape)
  }
}

const agree = (shapes: ReadonlyArray<Shape>, tensors: ReadonlyArray<TypedTensor>): boolean => {
  for (let index = 0; index < shapes.length; index++) {
    const shape = tensors[index]?.shape
    if (shape === undefined || !sameRow(shapes[index] ?? [], shape)) return false
  }
  return true
}

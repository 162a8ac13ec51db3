/** The shapes of state tensors as a key: requests share a batch only where they agree. */
import type { Sequencing } from "../model/Sequencing.ts"
import type { Request } from "../request/Request.ts"
import type { Shape } from "../tensor/TypedTensor.ts"
import * as StateTensors from "./StateTensors.ts"

/** Returns the key of a request. A sequence without a state yet has the shapes of the initial one. */
export const make = ({ states }: Sequencing): ((request: Request) => string) => {
  const initial = keyOf(states.map((state) => StateTensors.initial(state, false).shape))
  return ({ sequence }) => {
    const tensors = sequence?.state.tensors
    return tensors === undefined ? initial : keyOf(tensors.map(({ shape }) => shape.slice(1)))
  }
}

const keyOf = (shapes: ReadonlyArray<Shape>): string => {
  let key = ""
  for (const shape of shapes) key += `;${shape.join()}`
  return key
}

/** The request of a row that fills a gap of a batch: zeros in the shapes of another request, and no flag set. */
import { noParameters, type Request } from "../request/Request.ts"
import { noState, type SequenceState } from "../request/SequencePosition.ts"
import * as StateTensors from "./StateTensors.ts"

export const make = (like: Request): Request => ({
  id: "",
  inputs: like.inputs.map((tensor) => tensor && StateTensors.zerosLike(tensor)),
  rows: like.rows,
  parameters: noParameters,
  deadline: undefined,
  sequence: {
    id: typeof like.sequence?.id === "string" ? "" : 0n,
    isStart: false,
    isEnd: false,
    isReady: false,
    state: stateLike(like.sequence?.state),
  },
})

/** State that no request has: what the row leaves is dropped. */
const stateLike = (state: SequenceState | undefined): SequenceState => ({
  ...noState(),
  tensors: state?.tensors?.map(StateTensors.zerosLike),
})

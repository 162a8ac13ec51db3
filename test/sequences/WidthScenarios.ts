/** Scenarios of inputs with variable extents, by the names of Triton's tests. */
import { type Scenario, type Step, whole } from "./Scenario.ts"

const ids = [1001n, 1002n, 1003n, 1004n]

/** The widths of the sequences in the same order: two of them agree. */
const extents = [2, 2, 1, 3]

const wide = (steps: ReadonlyArray<Step>, width: number): ReadonlyArray<Step> => steps.map((one) => ({ ...one, width }))

/** Three requests of each. */
const steps = ids.flatMap((id, index) => wide(whole(id, [1, 2, 3]), extents[index] ?? 1))

const direct = { maxBatchSize: 4, hold: [12, 0] } as const

const dyna = {
  fields: "oldest { max_candidate_sequences: 4 preferred_batch_size: 4 max_queue_delay_microseconds: 2000000 }",
  maxBatchSize: 4,
  hold: [4, 0],
} as const

/** Sequences of 2, 3, 3 and 3 requests. */
const dynaSteps = [
  ...wide(whole(1001n, [1, 3]), 1),
  ...ids.slice(1).flatMap((id, index) => wide(whole(id, [1, 2, 3]), index + 2)),
]

export const widths: ReadonlyArray<Scenario> = [
  {
    ...direct,
    name: "ragged_batch",
    proves: ["L1.6.mismatch"],
    behaviour: "wide",
    steps,
    // Those of the first two slots, then those of the third and of the fourth: each batch has four rows.
    sizes: { 4: 9 },
  },
  {
    ...direct,
    name: "ragged_batch_allowed",
    proves: ["L1.6.ragged"],
    behaviour: "ragged",
    steps,
    sizes: { 4: 3 },
  },
  {
    ...dyna,
    fields: "oldest { max_candidate_sequences: 4 }",
    name: "different_shape",
    proves: ["L1.7.mismatch"],
    behaviour: "wide",
    steps: dynaSteps,
    sizes: { 1: 11 },
  },
  {
    ...dyna,
    name: "different_shape_allow_ragged",
    proves: ["L1.7.mismatch"],
    behaviour: "ragged",
    steps: dynaSteps,
    sizes: { 4: 2, 3: 1 },
  },
]

/** Scenarios of the datatypes of controls and ids. */
import { type Scenario, step } from "./Scenario.ts"

const flagTypes = ["INT32", "FP32", "BOOL"] as const
const idTypes = ["UINT64", "INT64", "UINT32", "INT32", "BYTES"] as const

const controls: ReadonlyArray<Scenario> = flagTypes.flatMap((flag) =>
  idTypes.map((id): Scenario => {
    const name = id === "BYTES" ? "12" : 12n
    return {
      name: `controls of ${flag} and ${id}`,
      ...(id === "BYTES" && { unlikeTriton: "Its Python backend cannot read an id that is a text" }),
      behaviour: "ids",
      controls: { flag, id },
      oneTransport: true,
      maxBatchSize: 4,
      steps: [step(name, "S", 1, 2), step(name, "", 5, 5), step(name, "E", 7, 19), step(name, "SE", 1, 14)],
      sizes: { 1: 4 },
    }
  }),
)

const longIds: ReadonlyArray<Scenario> = (["UINT32", "INT32"] as const).map((id) => ({
  name: `the low half of an id, ${id}`,
  behaviour: "ids",
  controls: { flag: "INT32", id },
  oneTransport: true,
  maxBatchSize: 4,
  steps: [step(2n ** 40n + 3n, "SE", 1, 5)],
  sizes: { 1: 1 },
}))

export const datatypes: ReadonlyArray<Scenario> = [...controls, ...longIds]

/** Ensembles of the repository under test, and their models: labels, batches, reshapes, sequences and failures. */
import { io, type Stored, step } from "./StoredParts.ts"

const fp32 = (dims: string, more = "") => `data_type: TYPE_FP32 dims: [ ${dims} ] ${more}`

const xy = (input: string, output: string) => io("input", "X", input) + io("output", "Y", output)

const script = (name: string, config: string, execute: string, more: Stored["more"] = {}): Stored => ({
  name,
  file: `export default { execute: ${execute} }`,
  at: "1/model.js",
  config,
  more,
})

const ensemble = (name: string, rows: number, tensors: string, steps: string, more: Stored["more"] = {}): Stored => ({
  name,
  file: "",
  at: "1/.keep",
  config: `platform: "ensemble" max_batch_size: ${rows} ${tensors} ensemble_scheduling { ${steps} }`,
  more,
})

/** X → Y. */
const through = (model: string, from = "X", to = "Y") => step(model, { X: from }, { Y: to })

const echo = "(requests) => requests.map(({ inputs: { X } }) => ({ Y: X }))"

/** Refuses other shapes of X than these, without the rows. */
const shapedEcho = (shape: string, leading: number) => `(requests) => requests.map(({ inputs: { X } }) =>
  X.shape.slice(${leading}).join() === "${shape}" ? { Y: X } : new Error("X has shape " + X.shape))`

/** Sets these parameters of each response. */
const setting = (name: string, parameters: string) =>
  script(
    name,
    `max_batch_size: 4 ${xy(fp32("1"), fp32("1"))}`,
    `(requests) => requests.map(({ inputs: { X }, setParameterUnsafe }) => {
      for (const [name, value] of Object.entries(${parameters})) setParameterUnsafe(name, value)
      return { Y: X }
    })`,
  )

const names = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`).join("\n")

const wide = xy(fp32("16"), fp32("16"))
const single = xy(fp32("1"), fp32("1"))
const labelFile = 'label_filename: "labels.txt"'

const labels: ReadonlyArray<Stored> = [
  script("labelling", `max_batch_size: 4 ${xy(fp32("16"), fp32("16", labelFile))}`, echo, {
    "labels.txt": names("label", 16),
  }),
  script("unlabelled", `max_batch_size: 4 ${wide}`, echo),
  ensemble("labels_of_step", 4, wide, through("labelling")),
  ensemble("labels_of_ensemble", 4, wide, through("labels_of_step")),
  ensemble("labels_of_own", 4, xy(fp32("16"), fp32("16", labelFile)), through("labelling"), {
    "labels.txt": names("own", 15),
  }),
  ensemble(
    "labels_of_two",
    4,
    wide + io("output", "T", fp32("16")),
    through("labelling", "X", "T") + through("unlabelled", "T"),
  ),
]

const batches: ReadonlyArray<Stored> = [
  script(
    "whole_batch",
    xy(fp32("-1, 16"), fp32("-1, 16")),
    `(requests) => requests.map(({ inputs: { X } }) => {
      const sums = X.data.map((x) => x + 100 * X.shape[0])
      return { Y: new X.constructor("FP32", X.shape, new Uint8Array(sums.buffer)) }
    })`,
  ),
  script("single_row", wide, echo),
  ensemble("batch_of_whole", 2, wide, through("whole_batch")),
  ensemble("batch_through_whole", 2, wide, through("whole_batch", "X", "T") + through("unlabelled", "T")),
  ensemble("batch_of_row", 2, wide, through("single_row")),
  ensemble("whole_of_batch", 0, xy(fp32("-1, 16"), fp32("-1, 16")), through("unlabelled")),
  ensemble("row_of_batch", 0, wide, through("unlabelled")),
]

const square = "reshape { shape: [ 4, 4 ] }"
const squares = xy(fp32("16", square), fp32("2, 8", square))

const reshapes: ReadonlyArray<Stored> = [
  script("square", `max_batch_size: 4 ${xy(fp32("4, 4"), fp32("4, 4"))}`, shapedEcho("4,4", 1)),
  script("reshaped_script", `max_batch_size: 4 ${squares}`, shapedEcho("4,4", 1)),
  script("reshaped_to_none", `max_batch_size: 4 ${single.replaceAll("[ 1 ]", "[ 1 ] reshape {}")}`, shapedEcho("", 1)),
  script(
    "reshaped_variable",
    xy(fp32("-1, 16", "reshape { shape: [ -1, 4, 4 ] }"), fp32("-1, 16", "reshape { shape: [ -1, 4, 4 ] }")),
    `(requests) => requests.map(({ inputs: { X } }) => X.shape.length === 3 ? { Y: X } : new Error("X has shape " + X.shape))`,
  ),
  script(
    "reshaped_open",
    xy(fp32("-1, -1"), fp32("-1, 1", "reshape { shape: [ -1 ] }")),
    "(requests) => requests.map(({ inputs: { X } }) => ({ Y: X }))",
  ),
  script(
    "reshaped_stream",
    `model_transaction_policy { decoupled: true } max_batch_size: 4 ${squares}`,
    `function* ({ inputs: { X } }) { if (X.shape.join() !== "1,4,4") throw new Error("X has shape " + X.shape); yield { Y: X } }`,
  ),
  ensemble("reshaped_ensemble", 4, squares, through("square")),
  ensemble("reshaped_without_batch", 0, squares.replaceAll("[ 4, 4 ]", "[ 1, 4, 4 ]"), through("square")),
  ensemble(
    "reshaped_for_reshaped",
    4,
    xy(fp32("4, 4", "reshape { shape: [ 16 ] }"), fp32("4, 4", "reshape { shape: [ 2, 8 ] }")),
    through("reshaped_script"),
  ),
]

const sequences: ReadonlyArray<Stored> = [
  setting("sets_nothing", "{}"),
  setting("sets_sequence", "{ sequence_id: 7n, sequence_start: true, other: 'mine' }"),
  setting("sets_wrong_id", "{ sequence_id: true }"),
  setting("sets_wrong_flag", "{ sequence_end: 5n }"),
  script(
    "tells_sequence",
    `max_batch_size: 4 ${single}`,
    `(requests) => requests.map(({ inputs: { X }, parameters, setParameterUnsafe }) => {
      const told = Object.entries(parameters).map(([name, value]) => name + "=" + value)
      setParameterUnsafe("told", told.join(" "))
      return { Y: X }
    })`,
  ),
  ensemble("sequence", 4, single, through("sets_nothing")),
  ensemble("sequence_of_step", 4, single, through("sets_sequence", "X", "T") + through("tells_sequence", "T")),
  ensemble("sequence_of_ensemble", 4, single, through("sequence", "X", "T") + through("tells_sequence", "T")),
  ensemble("sequence_wrong_id", 4, single, through("sets_wrong_id")),
  ensemble("sequence_wrong_flag", 4, single, through("sets_wrong_flag")),
]

const failures: ReadonlyArray<Stored> = [
  script("fails_always", `max_batch_size: 4 ${single}`, `() => { throw new Error("no way") }`),
  ensemble("failing_ensemble", 4, single, through("fails_always")),
]

const called: ReadonlyArray<Stored> = [
  {
    name: "reads_parameters",
    file: `export default {
      initialize: ({ models }) => models,
      execute: (requests, models) => Promise.all(requests.map(async ({ inputs: { X }, run, setParameterUnsafe }) => {
        const { outputs, parameters } = await run(models.withParameters.inferBatch("sets_sequence", { X }))
        setParameterUnsafe("heard", parameters.other + " " + parameters.sequence_id)
        return { Y: outputs.Y }
      })),
    }`,
    at: "1/model.js",
    config: `max_batch_size: 4 ${single}`,
  },
]

export const storedEnsembles: ReadonlyArray<Stored> = [
  ...labels,
  ...batches,
  ...reshapes,
  ...sequences,
  ...failures,
  ...called,
]

/** Ensembles whose steps are models of sequences: they pass ids and flags on. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import * as sequences from "../fixtures/sequences.ts"
import { model, node, value } from "../fixtures/onnx.ts"
import { step, whole } from "./Scenario.ts"
import { http, overStream, transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"
import { statistics } from "./Statistics.ts"

const tensors = `
  input { name: "INPUT" data_type: TYPE_INT32 dims: 1 }
  output { name: "OUTPUT" data_type: TYPE_INT32 dims: 1 }`

const ensemble = (models: ReadonlyArray<string>) => {
  const names = ["INPUT", ...models.slice(1).map((_, index) => `between${index}`), "OUTPUT"]
  const steps = models.map(
    (name, index) => `step { model_name: "${name}" model_version: -1
      input_map { key: "INPUT" value: "${names[index]}" } output_map { key: "OUTPUT" value: "${names[index + 1]}" } }`,
  )
  return `platform: "ensemble" max_batch_size: 4 ${tensors} ensemble_scheduling { ${steps.join(" ")} }`
}

const forms = { simple: ["m"], sequence: ["nop", "m"], fan: ["nop", "m", "nop"] }

const nop = model({
  inputs: [value("INPUT", "INT32", ["n", 1])],
  outputs: [value("OUTPUT", "INT32", ["n", 1])],
  nodes: [node("Identity", ["INPUT"], ["OUTPUT"])],
})

const files = (fields: string, file = sequences.flags(true)) => ({
  "m/config.pbtxt": sequences.config(fields),
  "m/1/model.onnx": file,
  "nop/config.pbtxt": `max_batch_size: 4 ${tensors}`,
  "nop/1/model.onnx": nop,
  ...Object.fromEntries(
    Object.entries(forms).flatMap(([name, models]) => [
      [`${name}/config.pbtxt`, ensemble(models)],
      [`${name}/1/.keep`, ""],
    ]),
  ),
})

describe.each(Object.keys(forms))("%s", (form) => {
  for (const [transport, send] of transports(4)) {
    // L1.9.pass@all, L1.4.ensemble@all, L1.8.ensemble@both
    it.live(`${transport}: the steps of a sequence reach its model`, () =>
      Effect.gen(function* () {
        const ports = yield* serveFiles(files(sequences.state(), sequences.accumulator(true)))
        const sent = [
          step(1n, "S", 1, 1),
          step("1", "S", 10, 10),
          step(1n, "", 2, 3),
          step("1", "E", 20, 30),
          step(1n, "E", 3, 6),
        ]
        for (const one of sent) {
          expect(yield* Effect.promise(() => send(ports, form, [one]))).toEqual([one.expected])
        }
        expect((yield* statistics(ports, form)).sizes).toEqual({ 1: 5 })
        const lost =
          `in ensemble '${form}', inference request for sequence 1 to model 'm' must specify the START flag on the ` +
          "first request of the sequence"
        expect(yield* Effect.promise(() => send(ports, form, [step(1n, "", 2, lost)]))).toEqual([lost])
      }),
    )
  }

  it.live("requests of different sequences share the batches of the model", () =>
    Effect.gen(function* () {
      const held = files(sequences.startAndReady)
      const ports = yield* serveFiles(held, { hold: form === "simple" ? [8, 0] : [4, 0] })
      const ids = form === "simple" ? [1n, 2n] : [1n, 2n, 3n, 4n]
      const steps = ids.flatMap((id) => (form === "simple" ? whole(id, [1, 2, 3, 4]) : whole(id, [5])))
      expect(yield* Effect.promise(() => overStream(true)(ports, form, steps))).toEqual(
        steps.map(({ expected }) => expected),
      )
      expect((yield* statistics(ports, "m")).sizes).toEqual(form === "simple" ? { 2: 4 } : { 4: 1 })
    }),
  )
})

/** A script that passes its input on and sets these parameters, each with the code of its value. */
const naming = (parameters: Readonly<Record<string, string>>) => `
  import { ModelScript } from "@nereid/repository"
  export default ModelScript.define({
    execute: (requests) => requests.map((request) => {
      ${Object.entries(parameters)
        .map(([name, value]) => `request.setParameterUnsafe("${name}", ${value})`)
        .join("\n      ")}
      return { OUTPUT: request.inputs.INPUT }
    }),
  })`

// L1.9.override@all
it.live("a step sets the sequence of the steps behind it, and of the response", () =>
  Effect.gen(function* () {
    const ports = yield* serveFiles({
      "m/config.pbtxt": sequences.config(`oldest {} ${sequences.allControls}`),
      "m/1/model.onnx": sequences.ids(true),
      "naming/config.pbtxt": `max_batch_size: 4 ${tensors}`,
      "naming/1/model.ts": naming({ sequence_id: "77n", sequence_start: "true", sequence_end: "true" }),
      "e/config.pbtxt": ensemble(["naming", "m"]),
      "e/1/.keep": "",
    })
    const body = { inputs: [{ name: "INPUT", shape: [1, 1], datatype: "INT32", data: [1] }] }
    const { text } = yield* http(ports, "/v2/models/e/infer", JSON.stringify(body))
    expect(JSON.parse(text)).toMatchObject({
      parameters: { sequence_id: 77, sequence_start: true, sequence_end: true },
      outputs: [{ data: [79] }],
    })
    for (const [, send] of transports(4)) {
      expect(yield* Effect.promise(() => send(ports, "e", [step(0n, "", 2, 80)]))).toEqual([80])
    }
  }),
)

// L1.9.wrong-type@all
it.live("a step that sets an id of another type fails the request", () =>
  Effect.gen(function* () {
    const ports = yield* serveFiles({
      "m/config.pbtxt": sequences.config(`oldest {} ${sequences.allControls}`),
      "m/1/model.onnx": sequences.ids(true),
      "naming/config.pbtxt": `max_batch_size: 4 ${tensors}`,
      "naming/1/model.ts": naming({ sequence_id: "true" }),
      "e/config.pbtxt": ensemble(["naming", "m"]),
      "e/1/.keep": "",
    })
    const message =
      "in ensemble 'e', expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or " +
      "TRITONSERVER_PARAMETER_STRING"
    for (const [, send] of transports(4)) {
      expect(yield* Effect.promise(() => send(ports, "e", [step(7n, "SE", 2, message)]))).toEqual([message])
    }
  }),
)

/** Control tensors and states of every datatype, through the real ONNX Runtime. */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { describe } from "vitest"
import * as sequences from "../fixtures/sequences.ts"
import { step } from "./Scenario.ts"
import { transports } from "./SequenceCalls.ts"
import { serveFiles } from "./SequenceServer.ts"

const flags = ["INT32", "FP32", "BOOL"] as const
const ids = ["UINT64", "INT64", "UINT32", "INT32", "BYTES"] as const

const combinations = flags.flatMap((flag) => ids.map((id) => [flag, id] as const))

for (const [transport, send] of transports(4)) {
  describe(transport, () => {
    // L1.1.flag-types@all, L1.1.id-types@all
    it.live("a model sees flags as INT32, FP32 or BOOL, and the id as any integer or text", () =>
      Effect.gen(function* () {
        const files = combinations.flatMap(([flag, id]) => [
          [`${flag}-${id}/config.pbtxt`, sequences.config(sequences.controls(flag, id))] as const,
          [`${flag}-${id}/1/model.onnx`, sequences.ids(true, flag, id)] as const,
        ])
        const ports = yield* serveFiles(Object.fromEntries(files))
        for (const [flag, id] of combinations) {
          const name = id === "BYTES" ? "12" : 12n
          const steps = [step(name, "S", 1, 2), step(name, "", 5, 5), step(name, "E", 7, 19)]
          for (const one of steps) {
            const [answer] = yield* Effect.promise(() => send(ports, `${flag}-${id}`, [one]))
            expect([flag, id, answer]).toEqual([flag, id, one.expected])
          }
        }
      }),
    )

    // L1.1.id-low-bits@all
    it.live("an id of 32 bits is the low half of a longer one", () =>
      Effect.gen(function* () {
        const ports = yield* serveFiles({
          "m/config.pbtxt": sequences.config(sequences.controls("INT32", "INT32")),
          "m/1/model.onnx": sequences.ids(true, "INT32", "INT32"),
        })
        expect(yield* Effect.promise(() => send(ports, "m", [step(2n ** 40n + 3n, "SE", 1, 5)]))).toEqual([5])
      }),
    )

    // L2.strings@all
    it.live("a state of texts begins with the text of its file", () =>
      Effect.gen(function* () {
        const texts = `state { input_name: "INPUT_STATE" output_name: "OUTPUT_STATE" data_type: TYPE_STRING dims: 1
          initial_state { name: "i" data_type: TYPE_STRING dims: 1 data_file: "seven" } }`
        const ports = yield* serveFiles({
          "m/config.pbtxt": sequences.config(`oldest {} ${texts}`),
          "m/1/model.onnx": sequences.previous(),
          // The length of the text, then the text.
          "m/initial_state/seven": Uint8Array.of(1, 0, 0, 0, 0x37),
        })
        const steps = [step(1n, "S", 10, 7), step(2n, "S", 20, 7), step(1n, "E", 30, 10), step(2n, "E", 0, 20)]
        for (const one of steps) {
          expect(yield* Effect.promise(() => send(ports, "m", [one]))).toEqual([one.expected])
        }
      }),
    )
  })
}

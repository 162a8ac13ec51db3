/** Values of models in Python that the protocols cannot carry: the answer is an error that names them. */
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { failureOf, serve, text, write } from "./PythonRepository.ts"

const texts =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'

/** Codes for the model, and what the error of their call says. */
const refused: ReadonlyArray<readonly [code: string, error: string]> = [
  ['return "\\ud800"', "Tensor 'OUT' must have texts that UTF-8 can express; in an element, character 0 is the lone"],
  [
    'return pb.InferenceResponse([pb.Tensor("OUT", np.array([b"x"]))], parameters={"p": 2 ** 64})',
    "Parameter 'p' must be an integer from -9223372036854775808 to 18446744073709551615, found 18446744073709551616",
  ],
  [
    'return pb.InferenceResponse([pb.Tensor("OUT", np.array([b"x"]))], parameters={"p": "\\udfff"})',
    "Parameter 'p' must be text that UTF-8 can express; character 0 is the lone surrogate '\\udfff'",
  ],
  [
    'pb.MetricFamily("refused_values", "d", pb.MetricFamily.GAUGE).Metric({"l": "\\ud800"})',
    "a label's value must be text that UTF-8 can express; character 0 is the lone surrogate '\\ud800'",
  ],
  ['raise ValueError("no file \\udcff")', "ValueError: no file \\udcff"],
  ['return pb.InferenceResponse(error=pb.TritonError("no \\udcff", pb.TritonError.NOT_FOUND))', "no \\udcff"],
]

describe.skipIf(python === undefined)("values that JSON and gRPC cannot carry", () => {
  it("are errors over both, which say what is wrong, and the model goes on", async () => {
    const { infer, rpc } = await serve(await write({ eval: { file: "triton_text", config: texts } }))
    for (const [code, message] of refused) {
      const { error } = await infer("eval", [text("IN", code)])
      expect(error, code).toContain(message)
      const bytesContents = [new TextEncoder().encode(code)]
      const inputs = [{ name: "IN", datatype: "BYTES", shape: [1n], contents: { bytesContents } }]
      const failure = await failureOf(rpc.modelInfer({ modelName: "eval", inputs }))
      expect(failure.message, code).toContain(message)
    }
    expect((await infer("eval", [text("IN", 'return "fine 🎈"')])).outputs?.[0]?.data).toEqual(["fine 🎈"])
  })

  it("do not include integers of 64 bits: signed and unsigned ones arrive exactly", async () => {
    const { rpc } = await serve(await write({ eval: { file: "triton_text", config: texts } }))
    const code = `out = pb.Tensor("OUT", np.array([b"x"]))
return pb.InferenceResponse([out], parameters={"most": 2 ** 64 - 1, "least": -(2 ** 63)})`
    const inputs = [
      { name: "IN", datatype: "BYTES", shape: [1n], contents: { bytesContents: [new TextEncoder().encode(code)] } },
    ]
    const { parameters } = await rpc.modelInfer({ modelName: "eval", inputs })
    expect(parameters["most"]?.parameterChoice).toEqual({ case: "uint64Param", value: 2n ** 64n - 1n })
    expect(parameters["least"]?.parameterChoice).toEqual({ case: "int64Param", value: -(2n ** 63n) })
  })
})

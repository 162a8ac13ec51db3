/** Decoupled models in Python, response senders, cancellation and rescheduling, over gRPC streams. */
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import { failureOf, type InferRequest, type Served, serve, type StreamResponse, write } from "./PythonRepository.ts"

const texts =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'
const decoupled = "model_transaction_policy { decoupled: true }"

const encoder = new TextEncoder()

/** A request with the code that a model is to run. */
const running = (modelName: string, code: string, more: InferRequest = {}): InferRequest => ({
  modelName,
  inputs: [{ name: "IN", datatype: "BYTES", shape: [1n], contents: { bytesContents: [encoder.encode(code)] } }],
  parameters: { triton_enable_empty_final_response: { parameterChoice: { case: "boolParam", value: true } } },
  ...more,
})

/** A response in short: its text, its error, or "final". */
const shown = ({ errorMessage, inferResponse }: StreamResponse): string => {
  if (errorMessage !== "") return `error: ${errorMessage}`
  const isFinal = inferResponse?.parameters["triton_final_response"]?.parameterChoice.value === true ? " final" : ""
  const [raw] = inferResponse?.rawOutputContents ?? []
  if (raw === undefined) return isFinal.trim()
  return new TextDecoder().decode(raw.subarray(4)) + isFinal
}

const stream = async ({ stream }: Pick<Served, "stream">, ...requests: ReadonlyArray<InferRequest>) =>
  (await stream(...requests)).map(shown)

const models = () =>
  write({
    decoupled: { file: "triton_decoupled", config: `${texts} ${decoupled}` },
    sender: { file: "triton_decoupled", config: texts },
    sync: { file: "triton_sync", config: texts },
  })

describe.skipIf(python === undefined)("decoupled models in Python", () => {
  // P2.decoupled.parameters@gRPC
  it("mark their last response, and send parameters", async () => {
    const server = await serve(await models())
    const call = (code: string) => stream(server, running("decoupled", code))
    expect(await call("for i in range(3): sender.send(response(i))\nsender.send(flags=FINAL)")).toEqual([
      "0",
      "1",
      "2",
      "final",
    ])
    expect(await call("sender.send(response(0))\nsender.send(response(1), FINAL)")).toEqual(["0", "1 final"])
    expect(await call("sender.send(flags=FINAL)")).toEqual(["final"])
    const [first] = await server.stream(
      running("decoupled", 'sender.send(response(1, parameters={"a": 1, "b": True, "c": "x"}), FINAL)'),
    )
    expect(first?.inferResponse?.parameters).toMatchObject({
      a: { parameterChoice: { value: 1n } },
      b: { parameterChoice: { value: true } },
      c: { parameterChoice: { value: "x" } },
    })
  })

  it("end the call with the first error where the caller chooses so", async () => {
    const server = await serve(await models())
    const call = (code: string) => stream(server, running("decoupled", code))
    const own = 'sender.send(pb.InferenceResponse(error=pb.TritonError("own", pb.TritonError.NOT_FOUND)), FINAL)'
    expect(await call(own)).toContain("error: own")
    const metadata = { headers: { triton_grpc_error: "true" } }
    const failing = async () => {
      for await (const _ of server.rpc.modelStreamInfer(requests(running("decoupled", own)), metadata));
    }
    expect(await failureOf(failing())).toEqual({ code: 5, message: "own" })
  })

  it("go on behind an error that has no final flag, for gRPC and for a model that calls them", async () => {
    const server = await serve(await models())
    const code = `error = lambda text: pb.InferenceResponse(error=pb.TritonError(text, pb.TritonError.NOT_FOUND))
sender.send(response(1))
sender.send(error("first"))
sender.send(response(2))
sender.send(error("second"))
sender.send(flags=FINAL)`
    const expected = ["1", "error: first", "2", "error: second"]
    expect(await stream(server, running("decoupled", code))).toEqual([...expected, "final"])
    const two = await server.stream(running("decoupled", code, { id: "a" }), running("decoupled", code, { id: "b" }))
    expect(two.map(shown).toSorted()).toEqual([...expected, ...expected, "final", "final"].toSorted())
    const { response_stats: counts } = await server.statistics("decoupled")
    expect([0, 1, 2, 3].map((key) => [counts[key].success.count, counts[key].fail.count])).toEqual([
      [3, 0],
      [0, 3],
      [3, 0],
      [0, 3],
    ])

    const calls = `request = pb.InferenceRequest(model_name="decoupled", requested_output_names=["OUT"],
    inputs=[pb.Tensor("IN", np.array([${JSON.stringify(code)}], dtype=np.object_))])
seen = [each.error().message() if each.has_error() else each.output_tensors()[0].as_numpy()[0].decode()
    if each.output_tensors() else "final" for each in request.exec(decoupled=True)]
sender.send(response(" ".join(seen)), FINAL)`
    expect(await stream(server, running("sender", calls))).toEqual(["1 first 2 second final final"])

    const metadata = { headers: { triton_grpc_error: "true" } }
    const failing = async () => {
      for await (const _ of server.rpc.modelStreamInfer(requests(running("decoupled", code)), metadata));
    }
    expect(await failureOf(failing())).toEqual({ code: 5, message: "first" })

    const events = await fetch(`${server.address}/v2/models/decoupled/generate_stream`, {
      method: "POST",
      body: JSON.stringify({ IN: code }),
    })
    expect(events.status).toBe(200)
    const documents = [...(await events.text()).matchAll(/^data: (.*)$/gm)].map(([, text = ""]) => JSON.parse(text))
    expect(documents.map(({ OUT, error }) => OUT ?? `error: ${error}`)).toEqual(expected)
  })

  it("the next execution after a change of the log levels knows them", async () => {
    const server = await serve(await models())
    const levels = async () => {
      const code = `import nereid_model.host
levels = nereid_model.host.current_host().log_levels
sender.send(response([levels.verbose > 0, levels.info, levels.warning, levels.error]), FINAL)`
      return (await stream(server, running("decoupled", code)))[0]
    }
    expect(await levels()).toBe("[True, True, True, True] final")
    await server.request("logging", { log_verbose_level: 0, log_warning: false })
    expect(await levels()).toBe("[False, True, False, True] final")
    await server.request("logging", { log_verbose_level: 1, log_info: false })
    expect(await levels()).toBe("[True, False, False, True] final")
  })

  it("the sender of a model in default mode sends its final flag, too", async () => {
    const server = await serve(await models())
    const call = (code: string) => stream(server, running("sender", code))
    expect(await call("sender.send(response(1), FINAL)")).toEqual(["1 final"])
    expect(await call("sender.send(response(1))\nsender.send(flags=FINAL)")).toEqual(["1 final"])
  })
})

const requests = async function* (...all: ReadonlyArray<InferRequest>) {
  yield* all
}

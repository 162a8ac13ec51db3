/** Decoupled models in Python, response senders, cancellation and rescheduling, over gRPC streams. */
import { describe, expect, it } from "vitest"
import { python } from "../fixtures/python.ts"
import {
  failureOf,
  type InferRequest,
  numbers,
  type Served,
  serve,
  type StreamResponse,
  text,
  write,
} from "./PythonRepository.ts"

const texts =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'
const integers = (dims = "1") =>
  `input { name: "IN" data_type: TYPE_INT32 dims: ${dims} } output { name: "OUT" data_type: TYPE_INT32 dims: ${dims} }`
const decoupled = "model_transaction_policy { decoupled: true }"

const encoder = new TextEncoder()

/** A request with the code that a model is to run. */
const running = (modelName: string, code: string, more: InferRequest = {}): InferRequest => ({
  modelName,
  inputs: [{ name: "IN", datatype: "BYTES", shape: [1n], contents: { bytesContents: [encoder.encode(code)] } }],
  parameters: { triton_enable_empty_final_response: { parameterChoice: { case: "boolParam", value: true } } },
  ...more,
})

const counting = (modelName: string, value: number, more: InferRequest = {}): InferRequest => ({
  modelName,
  inputs: [{ name: "IN", datatype: "INT32", shape: [1n], contents: { intContents: [value] } }],
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
  it("answer any number of responses, also after execute has returned, and with parameters", async () => {
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
    const later = `def answer():
    time.sleep(0.05)
    sender.send(response("later"))
    sender.send(flags=FINAL)
threading.Thread(target=answer).start()`
    expect(await call(later)).toEqual(["later", "final"])
    const [first] = await server.stream(
      running("decoupled", 'sender.send(response(1, parameters={"a": 1, "b": True, "c": "x"}), FINAL)'),
    )
    expect(first?.inferResponse?.parameters).toMatchObject({
      a: { parameterChoice: { value: 1n } },
      b: { parameterChoice: { value: true } },
      c: { parameterChoice: { value: "x" } },
    })
    expect((await server.infer("decoupled", [text("IN", "")])).error).toContain(
      "doesn't support models with decoupled transaction policy",
    )
  })

  it("fail with errors of execute, and stay ready", async () => {
    const server = await serve(await models())
    const call = (code: string) => stream(server, running("decoupled", code))
    for (let round = 0; round < 10; round++) {
      const [answer = ""] = await call('raise Exception("Intentional Error")')
      expect(answer).toContain(
        "Failed to process the request(s) for model 'decoupled_0', message: Exception: Intentional Error",
      )
    }
    expect(await server.isReady("decoupled")).toBe(true)
    const [returned = ""] = await call("sender.send(flags=FINAL)\nreturn [response(1)]")
    expect(returned).toMatch(/final|is using the decoupled mode and the execute function must return None/)
    const [wrong = ""] = await call("return [response(1)]")
    expect(wrong).toContain(
      "Python model 'decoupled_0' is using the decoupled mode and the execute function must return None.",
    )
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

  it("a sender refuses what it cannot send", async () => {
    const server = await serve(await models())
    const refused = async (code: string, model = "decoupled") => {
      const attempt = `try:
    ${code}
except Exception as error:
    sender.send(response(type(error).__name__ + ": " + str(error)), FINAL)`
      const [answer] = await stream(server, running(model, attempt))
      return answer
    }
    expect(await refused("sender.send(response(1), 7)")).toContain(
      "TritonModelException: Unable to send response. Unsupported flag provided.",
    )
    expect(await refused("sender.send()")).toContain(
      "Inference Response object must be provided when the response flags is set to zero.",
    )
    expect(await refused("sender.send(flags=FINAL)", "sender")).toContain(
      "Unable to send response. Non-decoupled model cannot send complete final before sending a response.",
    )
    const closed = `sender.send(response(1), FINAL)
try:
    sender.send(response(2))
except Exception as error:
    pb.Logger.log_info("refused: " + str(error))`
    expect(await stream(server, running("decoupled", closed))).toEqual(["1 final"])
    await expect.poll(server.log).toContain("refused: Unable to send response. Response sender has been closed.")
  })

  it("the sender answers once in default mode, in execute or after it", async () => {
    const server = await serve(await models())
    const call = (code: string) => stream(server, running("sender", code))
    expect(await call("sender.send(response(1), FINAL)")).toEqual(["1 final"])
    expect(await call("sender.send(response(1))\nsender.send(flags=FINAL)")).toEqual(["1 final"])
    const later = `threading.Timer(0.05, lambda: sender.send(response("later"), FINAL)).start()`
    expect(await call(later)).toEqual(["later final"])
    const twice = `sender.send(response(1))
try:
    sender.send(response(2))
except Exception as error:
    pb.Logger.log_info("refused: " + str(error))
sender.send(flags=FINAL)`
    expect(await call(twice)).toEqual(["1 final"])
    await expect.poll(server.log).toContain("Non-decoupled model cannot send more than one response.")
    const [nothing = ""] = await call("pass")
    expect(nothing).toMatch(/^error: /)
  })

  it("requests of an async execute overtake each other", async () => {
    const config = `input { name: "IN" data_type: TYPE_FP32 dims: 1 } output { name: "OUT" data_type: TYPE_FP32 dims: 1 } ${decoupled}`
    const server = await serve(await write({ waiting: { file: "triton_async", config } }))
    const requestOf = (seconds: number): InferRequest => ({
      modelName: "waiting",
      id: String(seconds),
      inputs: [{ name: "IN", datatype: "FP32", shape: [1n], contents: { fp32Contents: [seconds] } }],
    })
    const startedAt = performance.now()
    const order: Array<string> = []
    await Promise.all(
      [1, 1, 1, 0.9, 0].map(async (seconds) => {
        await server.stream(requestOf(seconds))
        order.push(String(seconds))
      }),
    )
    expect(order[0]).toBe("0")
    // One after the other, they would take 3.9 seconds.
    expect(performance.now() - startedAt).toBeLessThan(3500)
    await server.stream(requestOf(-1)).catch(() => {})
    await expect.poll(server.log).toContain("ValueError: wait_secs cannot be negative")
  })

  it("cancelled requests tell their model, over gRPC in both modes", async () => {
    const server = await serve(await models())
    const waiting = `pb.Logger.log_info("[execute_cancel] waits")
while not request.is_cancelled():
    time.sleep(0.01)
pb.Logger.log_info("[execute_cancel] Request cancelled at")
error = pb.InferenceResponse(error=pb.TritonError("cancelled", pb.TritonError.CANCELLED))`
    const default_ = new AbortController()
    const call = failureOf(
      server.rpc.modelInfer(running("sync", `${waiting}\nreturn error`), { signal: default_.signal }),
    )
    await expect.poll(server.log).toContain("[execute_cancel] waits")
    default_.abort()
    expect((await call).code).toBe(1)
    await expect.poll(server.log).toContain("[execute_cancel] Request cancelled at")
    const before = server.log().length
    const stopped = new AbortController()
    const code = `${waiting}\nsender.send(error, FINAL)`
    const streaming = async () => {
      for await (const _ of server.rpc.modelStreamInfer(requests(running("decoupled", code)), {
        signal: stopped.signal,
      }));
    }
    const failed = failureOf(streaming())
    await expect.poll(() => server.log().slice(before)).toContain("[execute_cancel] waits")
    stopped.abort()
    expect((await failed).code).toBe(1)
    await expect.poll(() => server.log().slice(before)).toContain("[execute_cancel] Request cancelled at")
    expect(await stream(server, running("decoupled", "sender.send(response(1), FINAL)"))).toEqual(["1 final"])
  })
})

describe.skipIf(python === undefined)("sequences of models in Python", () => {
  const control = (name: string, kind: string, value = "int32_false_true: [0, 1]") =>
    `{ name: "${name}" control { kind: ${kind} ${value} } }`
  const controls = [
    control("START", "CONTROL_SEQUENCE_START"),
    control("END", "CONTROL_SEQUENCE_END"),
    control("READY", "CONTROL_SEQUENCE_READY", "bool_false_true: [false, true]"),
    control("CORRID", "CONTROL_SEQUENCE_CORRID", "data_type: TYPE_UINT64"),
  ].join(", ")

  it("receive their control tensors, and their flags", async () => {
    const config = `max_batch_size: 4 input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 3 }
      sequence_batching { control_input [ ${controls} ] }`
    const { infer } = await serve(await write({ sums: { file: "triton_sequence", config } }))
    const step = async (id: number, value: number, parameters: object = {}) => {
      const input = [numbers("IN", "INT32", [1, 1], [value])]
      const { outputs, error } = await infer("sums", input, { parameters: { sequence_id: id, ...parameters } })
      return error ?? outputs?.[0]?.data
    }
    expect(await step(7, 1, { sequence_start: true })).toEqual([1, 1, 0])
    expect(await step(8, 10, { sequence_start: true })).toEqual([10, 1, 0])
    expect(await step(7, 2)).toEqual([3, 0, 0])
    expect(await step(7, 3, { sequence_end: true })).toEqual([6, 0, 1])
    expect(await step(8, 5, { sequence_end: true })).toEqual([15, 0, 1])
  })

  it("reschedule their requests", async () => {
    const iterative = "sequence_batching { iterative_sequence: true }"
    const server = await serve(
      await write({
        countdown: {
          file: "triton_reschedule",
          config: `${integers()} ${decoupled} sequence_batching { iterative_sequence: true control_input [ ${control("CORRID", "CONTROL_SEQUENCE_CORRID", "data_type: TYPE_UINT64")} ] }`,
        },
        again: { file: "triton_again", config: `${integers()} ${iterative}` },
        wrong_return: { file: "triton_again", config: `${integers()} ${iterative}` },
      }),
    )
    const responses = await server.stream(counting("countdown", 3))
    const values = responses.flatMap(({ inferResponse }) =>
      [...(inferResponse?.rawOutputContents[0] ?? [])].slice(0, 1),
    )
    expect(values).toEqual([2, 1, 0])
    const again = await server.infer("again", [numbers("IN", "INT32", [1], [41])])
    expect(again.outputs?.[0]?.data).toEqual([42])
    expect((await server.statistics("again")).execution_count).toBe(2)
    expect((await server.infer("wrong_return", [numbers("IN", "INT32", [1], [41])])).error).toContain(
      "Expected a None object in the execute function return list for reschduled request, found type",
    )
  })
})

const requests = async function* (...all: ReadonlyArray<InferRequest>) {
  yield* all
}

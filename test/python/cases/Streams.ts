/** Decoupled models, senders, rescheduling and cancellation: by gRPC streams, and by `generate_stream`. */
import { expect } from "vitest"
import { type CaseGroup, dataOf } from "../PythonCase.ts"
import { statusOf } from "../PythonClient.ts"
import { decoupled, numbers, pairOf, text, texts } from "../PythonRepository.ts"
import { events } from "./StreamCode.ts"
import { senderCases } from "./Senders.ts"
import { cancellationCases } from "./Cancellations.ts"

const iterative = "sequence_batching { iterative_sequence: true }"
const correlation = '{ name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }'

export const streams: CaseGroup = {
  name: "streams of models in Python",
  models: {
    decoupled: { file: "triton_decoupled", config: `${texts} ${decoupled}` },
    sender: { file: "triton_decoupled", config: texts },
    sync: { file: "triton_sync", config: texts },
    waiting: { file: "triton_async", config: `${pairOf("FP32")} ${decoupled}` },
    again: { file: "triton_again", config: `${pairOf("INT32")} ${iterative}` },
    wrong_return: { file: "triton_again", config: `${pairOf("INT32")} ${iterative}` },
    countdown: {
      file: "triton_reschedule",
      config: `${pairOf("INT32")} ${decoupled} sequence_batching { iterative_sequence: true control_input [ ${correlation} ] }`,
    },
  },
  cases: [
    {
      name: "unary requests to a decoupled model are refused",
      proves: ["P2.decoupled.unary"],
      run: async ({ client }) => {
        const { status, error } = await client.infer("decoupled", [text("IN", "")])
        expect(status).toBe(statusOf(client, "UNSUPPORTED"))
        expect(error).toContain("doesn't support models with decoupled transaction policy")
      },
    },
    {
      name: "any number of responses, also after execute has returned",
      proves: ["P2.decoupled.any", "P2.decoupled.final", "P2.decoupled.late"],
      run: async (server) => {
        const three = "for i in range(3): sender.send(response(i))\nsender.send(flags=FINAL)"
        expect(await events(server, three)).toEqual(["0", "1", "2"])
        expect(await events(server, "sender.send(response(0))\nsender.send(response(1), FINAL)")).toEqual(["0", "1"])
        expect(await events(server, "sender.send(flags=FINAL)")).toEqual([])
        const later = `def answer():
    sender.send(response("later"))
    sender.send(flags=FINAL)
threading.Timer(0.01, answer).start()`
        expect(await events(server, later)).toEqual(["later"])
      },
    },
    {
      name: "an exception fails the requests whose senders are open, and the model stays ready",
      proves: ["P2.decoupled.raise", "P2.decoupled.closed"],
      run: async (server) => {
        for (let round = 0; round < 10; round++) {
          const [answer = ""] = await events(server, 'raise Exception("Intentional Error")')
          expect(answer).toMatch(
            /^error: .*Failed to process the request\(s\) for model 'decoupled_0', message: Exception: Intentional Error/,
          )
        }
        expect(await events(server, 'sender.send(response(1), FINAL)\nraise Exception("too late")')).toEqual(["1"])
        expect(await server.client.isReady("decoupled")).toBe(true)
      },
    },
    {
      name: "execute must return None",
      proves: ["P2.decoupled.return"],
      run: async (server) => {
        const [answer] = await events(server, "return [response(1)]")
        expect(answer).toContain(
          "Python model 'decoupled_0' is using the decoupled mode and the execute function must return None.",
        )
      },
    },
    {
      name: "a sender that is dropped unclosed ends its request",
      proves: ["P2.decoupled.dropped"],
      run: async (server) => {
        expect(await events(server, "sender.send(response(1))")).toEqual(["1"])
        expect(await events(server, "pass")).toEqual([])
      },
    },
    {
      name: "an error is one of several responses",
      proves: ["P2.decoupled.error"],
      run: async (server) => {
        const code = `sender.send(response(1))
sender.send(pb.InferenceResponse(error=pb.TritonError("own", pb.TritonError.NOT_FOUND)))
sender.send(response(2), FINAL)`
        expect(await events(server, code)).toEqual(["1", "error: own", "2"])
      },
    },
    {
      name: "coroutines overtake each other, and an exception of one is logged",
      proves: ["P2.decoupled.async", "P2.decoupled.async-raise"],
      run: async ({ client, newLog }) => {
        const call = (value: number) => client.events("waiting", numbers("IN", "FP32", [1], [value]))
        // Each of the positive ones waits until another request is executed.
        expect(await Promise.all([1, 2, 0, 0].map(call))).toEqual([["1"], ["2"], ["0"], ["0"]])
        await call(-1)
        await expect.poll(newLog).toContain("ValueError: a number cannot be negative")
      },
    },
    {
      name: "execute of a decoupled model calls others by coroutines",
      proves: ["P6.sync-decoupled"],
      run: async (server) => {
        const code = `import asyncio
async def call():
    tensor = pb.Tensor("IN", np.array(["return 'called'"], dtype=np.object_))
    request = pb.InferenceRequest(model_name="sync", inputs=[tensor], requested_output_names=["OUT"])
    return (await request.async_exec()).output_tensors()[0].as_numpy()[0].decode()
sender.send(response(asyncio.run(call())), FINAL)`
        expect(await events(server, code)).toEqual(["called"])
      },
    },
    {
      name: "requests are rescheduled, in both modes",
      proves: ["P2.reschedule.decoupled", "P2.reschedule.default", "P2.return.rescheduled"],
      run: async ({ client, statistics }) => {
        expect(await client.events("countdown", numbers("IN", "INT32", [1], [3]))).toEqual(["2", "1", "0"])
        const executions = async () => (await statistics("again")).execution_count ?? 0
        const before = await executions()
        expect(dataOf(await client.infer("again", [numbers("IN", "INT32", [1], [41])]))).toEqual([42])
        expect((await executions()) - before).toBe(2)
        const wrong = async () => (await client.infer("wrong_return", [numbers("IN", "INT32", [1], [41])])).error
        expect(await wrong()).toContain(
          "Expected a None object in the execute function return list for reschduled request, found type",
        )
        // Its second execution is not rescheduled.
        expect(await wrong()).toBe(undefined)
      },
    },
    ...senderCases,
    ...cancellationCases,
  ],
}

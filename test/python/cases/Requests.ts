/** The API of requests and responses. Models run the code that a request has. */
import { expect } from "vitest"
import { type CaseGroup, type CaseServer, dataOf } from "../PythonCase.ts"
import type { InferOptions } from "../PythonClient.ts"
import { numbers, text, texts } from "../PythonRepository.ts"

/** Returns the value of an expression in the code of a model, which has the request. */
const read = async ({ client }: CaseServer, expression: string, options: InferOptions = {}): Promise<unknown> => {
  const answer = await client.infer("sync", [text("IN", `return json.dumps(${expression})`)], options)
  expect(answer.error).toBe(undefined)
  return JSON.parse(String(dataOf(answer)?.[0]))
}

const control = (name: string, kind: string, value = "int32_false_true: [0, 1]") =>
  `{ name: "${name}" control { kind: ${kind} ${value} } }`

const controls = [
  control("START", "CONTROL_SEQUENCE_START"),
  control("END", "CONTROL_SEQUENCE_END"),
  control("READY", "CONTROL_SEQUENCE_READY", "bool_false_true: [false, true]"),
  control("CORRID", "CONTROL_SEQUENCE_CORRID", "data_type: TYPE_UINT64"),
].join(", ")

const answering = (parameters: string) =>
  `return pb.InferenceResponse([pb.Tensor("OUT", np.array(["x"], dtype=np.object_))], parameters=${parameters})`

export const requests: CaseGroup = {
  name: "requests in the code of models in Python",
  models: {
    sync: { file: "triton_sync", config: texts },
    checks: { file: "triton_checks", config: texts },
    sums: {
      file: "triton_sequence",
      config: `max_batch_size: 4 input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 3 }
        sequence_batching { control_input [ ${controls} ] }`,
    },
  },
  cases: [
    {
      name: "its id, sequence, flags and timeout are those that were sent",
      proves: ["P3.request.id", "P3.request.correlation", "P3.request.timeout"],
      run: async (server) => {
        const all = "[request.request_id(), request.correlation_id(), request.flags(), request.timeout()]"
        expect(await read(server, all)).toEqual(["", 0, 0, 0])
        const parameters = { sequence_id: 5, sequence_start: true, sequence_end: true, timeout: 60_000_000 }
        expect(await read(server, all, { id: "mine", parameters })).toEqual(["mine", 5, 3, 60_000_000])
        const named = { parameters: { sequence_id: "five", sequence_start: true } }
        expect(await read(server, all, named)).toEqual(["", "five", 1, 0])
      },
    },
    {
      name: "its parameters are JSON, without those of the protocol",
      proves: ["P3.request.parameters", "P3.request.parameters-own"],
      run: async (server) => {
        expect(await read(server, "request.parameters()")).toBe("{}")
        const own = { a: 1, b: true, c: "x", d: 0.5 }
        const protocol = { timeout: 60_000_000, priority: 1, sequence_id: 7, sequence_start: true }
        const seen = await read(server, "json.loads(request.parameters())", { parameters: { ...own, ...protocol } })
        expect(seen).toEqual(own)
      },
    },
    {
      name: "its requested outputs are a set, and without tracing its trace is None",
      proves: ["P3.request.outputs"],
      run: async (server) => {
        const names = "[type(request.requested_output_names()).__name__, list(request.requested_output_names())]"
        expect(await read(server, names, { outputs: ["OUT"] })).toEqual(["set", ["OUT"]])
        expect(await read(server, names)).toEqual(["set", ["OUT"]])
        expect(await read(server, "request.trace().get_context()")).toBe(null)
      },
    },
    {
      name: "sequences have their flags and their control tensors",
      proves: ["P3.request.flags"],
      run: async ({ client }) => {
        const step = async (id: number, value: number, parameters: InferOptions["parameters"] = {}) => {
          const input = [numbers("IN", "INT32", [1, 1], [value])]
          const answer = await client.infer("sums", input, { parameters: { sequence_id: id, ...parameters } })
          return answer.error ?? dataOf(answer)
        }
        expect(await step(7, 1, { sequence_start: true })).toEqual([1, 1, 0])
        expect(await step(8, 10, { sequence_start: true })).toEqual([10, 1, 0])
        expect(await step(7, 2)).toEqual([3, 0, 0])
        expect(await step(7, 3, { sequence_end: true })).toEqual([6, 0, 1])
        expect(await step(8, 5, { sequence_end: true })).toEqual([15, 0, 1])
      },
    },
    {
      name: "parameters of responses arrive, and others are refused",
      proves: ["P3.response.parameters", "P3.response.parameters-refused"],
      run: async ({ client, run }) => {
        const { parameters } = await client.infer("sync", [text("IN", answering('{"p": 7, "q": False, "r": "s"}'))])
        expect(parameters).toEqual({ p: 7, q: false, r: "s" })
        expect(await run(answering("{1: 1}"))).toContain(
          "Expect parameters keys to have type str, found type <class 'int'>",
        )
        for (const wrong of ['{"a": 1.5}', '{"a": None}']) {
          expect(await run(answering(wrong))).toContain(
            "Expect parameters values to have type bool/int/str, found type",
          )
        }
        expect(await run(answering("[1]"))).toContain(", got <class 'list'>")
      },
    },
    {
      name: "texts of str arrive as UTF-8",
      proves: ["P3.tensor.utf8"],
      run: async ({ run }) => expect(await run('return "naïve 🌊"')).toBe("naïve 🌊"),
    },
    {
      name: "wrong arguments are refused",
      proves: ["P3.arguments"],
      run: async ({ run }) => expect(await run("", "checks")).toBe(""),
    },
    {
      name: "the module of the code, its path and its directory are those of the version",
      proves: ["P1.import.name", "P1.import.path", "P1.import.again", "P1.process.directory", "P3.function.model-dir"],
      run: async (server) => {
        const { path } = server.fixture
        expect(
          await read(server, "[__import__('sys').modules[type(self).__module__].__name__, pb.get_model_dir()]"),
        ).toEqual(["1.model", `${path}/sync/1`])
        const paths = await read(server, "__import__('sys').path[-3:]")
        expect(paths).toEqual([expect.stringMatching(/\/packages\/python\/python$/), `${path}/sync/1`, `${path}/sync`])
        const again = "[__import__('model').TritonPythonModel is type(self), __import__('model').__name__]"
        expect(await read(server, again)).toEqual([false, "model"])
        expect(await read(server, "os.getcwd()")).toBe(process.cwd())
      },
    },
  ],
}

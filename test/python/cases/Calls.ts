/** Calls of other models by the code of models in Python ("business logic scripting"). */
import { expect } from "vitest"
import { addSub } from "../../fixtures/onnx.ts"
import type { CaseGroup, CaseServer } from "../PythonCase.ts"
import { decoupled, pairOf, text, texts } from "../PythonRepository.ts"

/** Requests to add_sub and to count, whose arguments may be replaced. */
const functions = `
def request_of(**others):
    a = pb.Tensor("A", np.array([[1, 2, 3, 4]], dtype=np.float32))
    b = pb.Tensor("B", np.array([[10, 20, 30, 40]], dtype=np.float32))
    given = dict(model_name="add_sub", inputs=[a, b], requested_output_names=["SUM"])
    return pb.InferenceRequest(**{**given, **others})
def counting(n, **others):
    tensor = pb.Tensor("IN", np.array([n], dtype=np.int32))
    return pb.InferenceRequest(
        **{**dict(model_name="count", inputs=[tensor], requested_output_names=["OUT"]), **others})
def values(responses):
    return [[t.as_numpy().tolist() for t in r.output_tensors()] for r in responses]
def failure(response):
    assert response.has_error() and not response.output_tensors()
    return str(int(response.error().code())) + " " + response.error().message()
`

const script = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({
  Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x * 3).buffer)),
})) }`

const seen = `import json
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            seen = [request.request_id(), request.correlation_id(), request.flags(), request.timeout(), json.loads(request.parameters())]
            out = pb_utils.Tensor("OUT", np.array([json.dumps(seen)], dtype=np.object_))
            responses.append(pb_utils.InferenceResponse([out], parameters={"p": 1, "q": True, "r": "s"}))
        return responses
`

const call = ({ run }: CaseServer, code: string, model = "bls") => run(functions + code, model)

const failureOf = (server: CaseServer, expression: string) => call(server, `return failure(${expression})`)

const recursion = (depth: number): string =>
  depth === 0
    ? "return 'end'"
    : `inner = ${JSON.stringify(recursion(depth - 1))}
tensor = pb.Tensor("IN", np.array([inner], dtype=np.object_))
response = pb.InferenceRequest(model_name="recursive", inputs=[tensor], requested_output_names=["OUT"]).exec()
return response.error().message() if response.has_error() else response.output_tensors()[0].as_numpy()[0].decode()`

export const calls: CaseGroup = {
  name: "calls of other models",
  models: {
    bls: { file: "triton_sync", config: texts },
    bls_async: { file: "triton_text", config: texts },
    count: { file: "triton_count", config: `${pairOf("INT32")} ${decoupled}` },
    identity: {
      file: "triton_identity",
      config:
        'input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }',
    },
    codes: { file: "triton_codes", config: texts },
    recursive: { file: "triton_sync", config: `${texts} instance_group { count: 3 }` },
    called: { file: "triton_sync", config: texts },
  },
  files: (fixture) => {
    fixture.write("add_sub/1/model.onnx", addSub("FP32", ["n", 4]))
    fixture.write("add_sub/config.pbtxt", "max_batch_size: 8 dynamic_batching {}")
    fixture.write("batched/1/model.onnx", addSub("FP32", ["n", 4]))
    const batching = "dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 20000000 }"
    fixture.write("batched/config.pbtxt", `max_batch_size: 8 ${batching}`)
    fixture.write("triple/1/model.js", script)
    fixture.write(
      "triple/config.pbtxt",
      'max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }',
    )
    fixture.write("seen/1/model.py", seen)
    fixture.write("seen/config.pbtxt", `backend: "python" output { name: "OUT" data_type: TYPE_STRING dims: 1 }`)
  },
  cases: [
    {
      name: "reach ONNX, TypeScript and Python models, by name and version",
      proves: ["P6.exec", "P6.version", "P6.empty"],
      run: async (server) => {
        const sum = 'return pb.get_output_tensor_by_name(request_of().exec(), "SUM").as_numpy().tolist()'
        expect(await call(server, sum)).toBe("[[11.0, 22.0, 33.0, 44.0]]")
        const both = "return sorted(t.name() for t in request_of(requested_output_names=[]).exec().output_tensors())"
        expect(await call(server, both)).toBe("['DIFFERENCE', 'SUM']")
        expect(await call(server, "return values([request_of(model_version=1).exec()])")).toContain("11.0")
        const triple = `x = pb.Tensor("X", np.array([[2]], dtype=np.float32))
return values([request_of(model_name="triple", inputs=[x], requested_output_names=["Y"]).exec()])`
        expect(await call(server, triple)).toBe("[[[[6.0]]]]")
        const empty = `x = pb.Tensor("INPUT0", np.zeros([0], dtype=np.float32))
return request_of(model_name="identity", inputs=[x], requested_output_names=["OUTPUT0"]).exec().output_tensors()[0].shape()`
        expect(await call(server, empty)).toBe("[0]")
      },
    },
    {
      name: "run at the same time, any number of them, and are counted",
      proves: ["P6.async", "P6.many", "P6.count"],
      run: async (server) => {
        const count = async () => Number((await server.statistics("add_sub")).inference_stats.success.count ?? 0)
        const before = await count()
        const two = `first, second = await asyncio.gather(request_of().async_exec(), request_of(requested_output_names=["DIFFERENCE"]).async_exec())
return first.output_tensors()[0].as_numpy().sum() + second.output_tensors()[0].as_numpy().sum()`
        expect(await call(server, two, "bls_async")).toBe("20.0")
        const many = `responses = await asyncio.gather(*[request_of().async_exec() for _ in range(100)])
return sum(len(response.output_tensors()) for response in responses)`
        expect(await call(server, many, "bls_async")).toBe("100")
        expect((await count()) - before).toBe(102)
      },
    },
    {
      name: "share the batches of their model",
      proves: ["P6.batch"],
      run: async (server) => {
        const executions = async () => Number((await server.statistics("batched")).execution_count ?? 0)
        const before = await executions()
        const many = `responses = await asyncio.gather(*[request_of(model_name="batched").async_exec() for _ in range(8)])
return sum(len(response.output_tensors()) for response in responses)`
        expect(await call(server, many, "bls_async")).toBe("8")
        expect((await executions()) - before).toBe(1)
      },
    },
    {
      name: "fail with an error, which is never an exception",
      proves: [
        "P6.error.value",
        "P6.error.unknown",
        "P6.error.inputs",
        "P6.error.outputs",
        "P6.error.decoupled",
        "P6.error.code",
        "P6.error.iterator",
      ],
      run: async (server) => {
        const failure = (expression: string) => failureOf(server, expression)
        expect(await failure('request_of(model_name="unknown").exec()')).toBe(
          "2 Model unknown - Error when running inference: Request for unknown model: 'unknown' is not found",
        )
        expect(await failure("request_of(model_version=9).exec()")).toContain(
          "Model add_sub - Error when running inference: Request for unknown model: 'add_sub' version 9 is not found",
        )
        expect(await failure("request_of(inputs=request_of().inputs()[:1]).exec()")).toMatch(
          /^3 Model add_sub - Error when running inference: .*expected 2 inputs but got 1 inputs for model 'add_sub'/,
        )
        expect(await failure('request_of(requested_output_names=["NO"]).exec()')).toContain(
          "unexpected inference output 'NO' for model 'add_sub'",
        )
        expect(await failure("counting(3).exec()")).toMatch(
          /^5 Model \S+ - Error when running inference: Model \S+ is using the decoupled\. .*'decoupled=True'/,
        )
        const coded = `request_of(model_name="codes", inputs=[pb.Tensor("IN", np.array([b"UNAVAILABLE"], dtype=np.object_))], requested_output_names=[]).exec()`
        expect(await failure(coded)).toBe("4 error code: UNAVAILABLE")
        expect(await failure("next(request_of(model_name='unknown').exec(decoupled=True))")).toContain("is not found")
      },
    },
    {
      name: "give an iterator over the responses of a decoupled model",
      proves: [
        "P6.decoupled.one",
        "P6.decoupled.several",
        "P3.iterator.items",
        "P3.iterator.final",
        "P3.iterator.next",
        "P3.iterator.replay",
        "P3.iterator.cancel",
      ],
      run: async (server) => {
        const all = (expression: string) => call(server, `return values(${expression}.exec(decoupled=True))`)
        // The last response is final, and then there is an empty one for a final flag by itself.
        expect(await all("counting(3)")).toBe("[[[0]], [[1]], [[2]]]")
        expect(await all("counting(-3)")).toBe("[[[0]], [[1]], [[2]], []]")
        expect(await all("counting(0)")).toBe("[[]]")
        expect(await all("request_of()")).toBe("[[[[11.0, 22.0, 33.0, 44.0]]]]")
        const again = `iterator = counting(2).exec(decoupled=True)
first = values([next(iterator), next(iterator)])
return [first, next(iterator, "nothing"), values(iterator) == values(iterator) == first]`
        expect(await call(server, again)).toBe("[[[[0]], [[1]]], 'nothing', True]")
        const cancelled = `iterator = counting(1000).exec(decoupled=True)
next(iterator)
iterator.cancel()
last = list(iterator)[-1]
return last.has_error() and int(last.error().code()) or "finished"`
        expect(await call(server, cancelled)).toMatch(/^(7|finished)$/)
        const late = `iterator = counting(1).exec(decoupled=True)
list(iterator)
iterator.cancel()
return values(iterator)`
        expect(await call(server, late)).toBe("[[[0]]]")
      },
    },
    {
      name: "of a model by itself run while it has a free instance, and are refused otherwise",
      proves: ["P6.recursion", "P6.cycle"],
      run: async (server) => {
        expect(await server.run(recursion(2), "recursive")).toBe("end")
        expect(await server.run(recursion(3), "recursive")).toContain("the calls would wait for each other forever")
      },
    },
    {
      name: "forward ids, sequence flags, a timeout and parameters, and return parameters",
      proves: ["P6.forward.id", "P6.parameters"],
      run: async (server) => {
        const forwarded = `response = pb.InferenceRequest(model_name="seen", inputs=[], requested_output_names=[], request_id="id",
    correlation_id=5, flags=3, timeout=11000000000, parameters={"a": 1, "b": True, "c": "x"}).exec()
return response.output_tensors()[0].as_numpy()[0].decode() + response.parameters()`
        expect(await call(server, forwarded)).toBe(
          '["id", 5, 3, 11000000000, {"a": 1, "b": true, "c": "x"}]{"p":1,"q":true,"r":"s"}',
        )
      },
    },
    {
      name: "let other threads of their process run",
      proves: ["P6.lock"],
      run: async (server) => {
        // The called model waits until the caller has begun to wait.
        const code = `import tempfile, threading
path = tempfile.mktemp()
inner = f"while not os.path.exists({path!r}): time.sleep(0.001)\\nreturn 'seen'"
timer = threading.Timer(0.01, lambda: open(path, "w").close())
timer.start()
tensor = pb.Tensor("IN", np.array([inner], dtype=np.object_))
response = request_of(model_name="called", inputs=[tensor], requested_output_names=["OUT"]).exec()
os.remove(path)
return response.output_tensors()[0].as_numpy()[0].decode()`
        expect(await call(server, code)).toBe("seen")
      },
    },
    {
      name: "go on when the caller of their request leaves",
      proves: ["P6.cancel"],
      run: async (server) => {
        const { client, newLog } = server
        const inner = 'pb.Logger.log_info(f"the called one: {request.is_cancelled()}")\nreturn 1'
        const code = `pb.Logger.log_info("it waits")
while not request.is_cancelled():
    time.sleep(0.001)
tensor = pb.Tensor("IN", np.array([${JSON.stringify(inner)}], dtype=np.object_))
response = request_of(model_name="called", inputs=[tensor], requested_output_names=["OUT"]).exec()
pb.Logger.log_info(f"the caller: {response.has_error()}")`
        const controller = new AbortController()
        const left = client.infer("bls", [text("IN", functions + code)], { signal: controller.signal }).catch(() => {})
        await expect.poll(newLog).toContain("it waits")
        controller.abort()
        await left
        await expect.poll(newLog).toContain("the caller: False")
        await expect.poll(newLog).toContain("the called one: False")
      },
    },
    {
      name: "come from forked processes, too",
      proves: ["P6.fork"],
      run: async (server) => {
        const code = `import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    return pool.map(self.forked, [1, 2, 3, 4])`
        expect(await server.run(code, "bls")).toBe("[10.0, 10.0, 10.0, 10.0]")
      },
    },
  ],
}

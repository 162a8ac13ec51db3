/** Calls of other models by the code of models in Python ("business logic scripting"). */
import { expect } from "vitest"
import type { CaseGroup } from "../PythonCase.ts"
import { text } from "../PythonRepository.ts"
import { call, functions } from "./CallCode.ts"
import { callErrorCases } from "./CallErrors.ts"
import { callStreamCases } from "./CallStreams.ts"
import { callModels, writeCallModels } from "./CallModels.ts"

const recursion = (depth: number): string =>
  depth === 0
    ? "return 'end'"
    : `inner = ${JSON.stringify(recursion(depth - 1))}
tensor = pb.Tensor("IN", np.array([inner], dtype=np.object_))
response = pb.InferenceRequest(model_name="recursive", inputs=[tensor], requested_output_names=["OUT"]).exec()
return response.error().message() if response.has_error() else response.output_tensors()[0].as_numpy()[0].decode()`

export const calls: CaseGroup = {
  name: "calls of other models",
  models: callModels,
  files: writeCallModels,
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
      name: "pass ensembles, sequences and the response cache",
      proves: ["P6.ensemble", "P6.sequence", "P6.cache"],
      run: async (server) => {
        const doubled = `x = pb.Tensor("X", np.array([[1, 2, 3, 4]], dtype=np.float32))
return values([request_of(model_name="double", inputs=[x], requested_output_names=["Y"]).exec()])`
        expect(await call(server, doubled)).toBe("[[[[2.0, 4.0, 6.0, 8.0]]]]")
        const sums = `steps = [(1, 1), (2, 0), (3, 2)]
return values([counting(n, model_name="running", correlation_id="s", flags=flags).exec() for n, flags in steps])`
        expect(await call(server, sums)).toBe("[[[1]], [[3]], [[6]]]")
        const unstarted = 'counting(1, model_name="running", correlation_id="other").exec()'
        expect(await call(server, `return failure(${unstarted})`)).toContain(
          "must specify the START flag on the first request of the sequence",
        )
        const executions = async () => Number((await server.statistics("cached")).execution_count ?? 0)
        const before = await executions()
        const number = server.client.transport === "HTTP" ? 1 : 2
        const twice = `x = pb.Tensor("INPUT0", np.array([${number}], dtype=np.float32))
given = dict(model_name="cached", inputs=[x], requested_output_names=["OUTPUT0"])
return values([request_of(**given).exec() for _ in range(2)])`
        expect(await call(server, twice)).toBe(`[[[${number}.0]], [[${number}.0]]]`)
        expect((await executions()) - before).toBe(1)
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
    ...callErrorCases,
    ...callStreamCases,
  ],
}

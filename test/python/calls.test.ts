/** Calls of other models by the code of models in Python ("business logic scripting"). */
import { Repository } from "@nereid/repository"
import { Server } from "@nereid/server"
import { Context, Effect, Layer, Tracer } from "effect"
import { describe, expect, it } from "vitest"
import { addSub } from "../fixtures/onnx.ts"
import { python } from "../fixtures/python.ts"
import { parentOf, recorder } from "../fixtures/spans.ts"
import { type JsonResponse, scoped, type Served, serve, text, write } from "./PythonRepository.ts"

const texts =
  'input { name: "IN" data_type: TYPE_STRING dims: 1 } output { name: "OUT" data_type: TYPE_STRING dims: 1 }'
const count = 'input { name: "IN" data_type: TYPE_INT32 dims: 1 } output { name: "OUT" data_type: TYPE_INT32 dims: 1 }'
const decoupled = "model_transaction_policy { decoupled: true }"

/** Runs code in the model `bls`, and returns the text of its result, or the error. */
const run = async ({ infer }: Pick<Served, "infer">, code: string, model = "bls"): Promise<string> => {
  const { outputs, error } = await infer(model, [text("IN", code)])
  return error === undefined ? String(outputs?.[0]?.data[0]) : `failed: ${error}`
}

/** A request to add_sub, whose arguments may be replaced. */
const addSubRequest = `
def request_of(**others):
    a = pb.Tensor("A", np.array([[1, 2, 3, 4]], dtype=np.float32))
    b = pb.Tensor("B", np.array([[10, 20, 30, 40]], dtype=np.float32))
    given = dict(model_name="add_sub", inputs=[a, b], requested_output_names=["SUM"])
    return pb.InferenceRequest(**{**given, **others})
def counting(n, **others):
    tensor = pb.Tensor("IN", np.array([n], dtype=np.int32))
    return pb.InferenceRequest(
        **{**dict(model_name="count", inputs=[tensor], requested_output_names=["OUT"]), **others})
`

const script = `export default { execute: (requests) => requests.map(({ inputs: { X } }) => ({
  Y: new X.constructor("FP32", X.shape, new Uint8Array(Float32Array.from(X.data, (x) => x * 3).buffer)),
})) }`

const models = async () => {
  const fixture = await write({
    bls: { file: "triton_sync", config: texts },
    bls_async: { file: "triton_text", config: texts },
    count: { file: "triton_count", config: `${count} ${decoupled}` },
    identity: {
      file: "triton_identity",
      config:
        'input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 } output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }',
    },
    codes: { file: "triton_codes", config: texts },
    broken: { file: "triton_life", config: texts.replaceAll("TYPE_STRING", "TYPE_FP32") },
    recursive: { file: "triton_sync", config: `${texts} instance_group { count: 3 }` },
  })
  fixture.write("add_sub/1/model.onnx", addSub("FP32", ["n", 4]))
  fixture.write("add_sub/config.pbtxt", "max_batch_size: 8 dynamic_batching {}")
  fixture.write("triple/1/model.js", script)
  fixture.write(
    "triple/config.pbtxt",
    'max_batch_size: 4 input { name: "X" data_type: TYPE_FP32 dims: 1 } output { name: "Y" data_type: TYPE_FP32 dims: 1 }',
  )
  return fixture
}

describe.skipIf(python === undefined)("calls of other models", () => {
  it("reach ONNX, TypeScript and Python models, with versions, ids and parameters", async () => {
    const server = await serve(await models())
    const call = (code: string, model = "bls") => run(server, addSubRequest + code, model)
    expect(await call('return pb.get_output_tensor_by_name(request_of().exec(), "SUM").as_numpy().tolist()')).toBe(
      "[[11.0, 22.0, 33.0, 44.0]]",
    )
    expect(
      await call("return sorted(t.name() for t in request_of(requested_output_names=[]).exec().output_tensors())"),
    ).toBe("['DIFFERENCE', 'SUM']")
    expect(await call("return len(request_of(model_version=1, request_id='r').exec().output_tensors())")).toBe("1")
    const triple = `x = pb.Tensor("X", np.array([[2]], dtype=np.float32))
return request_of(model_name="triple", inputs=[x], requested_output_names=["Y"]).exec().output_tensors()[0].as_numpy().tolist()`
    expect(await call(triple)).toBe("[[6.0]]")
    const empty = `x = pb.Tensor("INPUT0", np.zeros([0], dtype=np.float32))
return request_of(model_name="identity", inputs=[x], requested_output_names=["OUTPUT0"]).exec().output_tensors()[0].shape()`
    expect(await call(empty)).toBe("[0]")
    const twoAtOnce = `first, second = await asyncio.gather(request_of().async_exec(), request_of(requested_output_names=["DIFFERENCE"]).async_exec())
return first.output_tensors()[0].as_numpy().sum() + second.output_tensors()[0].as_numpy().sum()`
    expect(await call(twoAtOnce, "bls_async")).toBe("20.0")
    const many = `responses = await asyncio.gather(*[request_of().async_exec() for _ in range(100)])
return sum(len(response.output_tensors()) for response in responses)`
    expect(await call(many, "bls_async")).toBe("100")
    expect((await server.statistics("add_sub")).inference_stats.success.count).toBe(105)
  })

  it("share the batches of their model", async () => {
    const fixture = await models()
    fixture.write(
      "add_sub/config.pbtxt",
      "max_batch_size: 8 dynamic_batching { preferred_batch_size: 8 max_queue_delay_microseconds: 20000000 }",
    )
    const server = await serve(fixture)
    const many = `responses = await asyncio.gather(*[request_of().async_exec() for _ in range(8)])
return sum(len(response.output_tensors()) for response in responses)`
    expect(await run(server, addSubRequest + many, "bls_async")).toBe("8")
    expect(await server.statistics("add_sub")).toMatchObject({ execution_count: 1, inference_count: 8 })
  })

  it("fail with an error, which is never an exception", async () => {
    const server = await serve(await models())
    const failure = (expression: string) =>
      run(
        server,
        `${addSubRequest}
response = ${expression}
assert response.has_error() and not response.output_tensors()
return str(int(response.error().code())) + " " + response.error().message()`,
      )
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
  })

  it("give an iterator over the responses of a decoupled model", async () => {
    const server = await serve(await models())
    const call = (code: string) => run(server, addSubRequest + code)
    const values = `def values(responses):
    return [[t.as_numpy().tolist() for t in r.output_tensors()] for r in responses]
`
    // The last response is final, and then there is an empty one for a final flag by itself.
    expect(await call(`${values}return values(counting(3).exec(decoupled=True))`)).toBe("[[[0]], [[1]], [[2]]]")
    expect(await call(`${values}return values(counting(-3).exec(decoupled=True))`)).toBe("[[[0]], [[1]], [[2]], []]")
    expect(await call(`${values}return values(counting(0).exec(decoupled=True))`)).toBe("[[]]")
    expect(await call(`${values}return len(values(request_of().exec(decoupled=True)))`)).toBe("1")
    const again = `${values}iterator = counting(2).exec(decoupled=True)
return values(iterator) == values(iterator)`
    expect(await call(again)).toBe("True")
    const cancelled = `iterator = counting(1000).exec(decoupled=True)
next(iterator)
iterator.cancel()
last = list(iterator)[-1]
return last.has_error() and int(last.error().code()) or "finished"`
    expect(await call(cancelled)).toMatch(/^(7|finished)$/)
  })

  it("of a model by itself run while it has a free instance, and are refused otherwise", async () => {
    const server = await serve(await models())
    const recursion = (depth: number): string =>
      depth === 0
        ? "return 'end'"
        : `inner = ${JSON.stringify(recursion(depth - 1))}
tensor = pb.Tensor("IN", np.array([inner], dtype=np.object_))
response = pb.InferenceRequest(model_name="recursive", inputs=[tensor], requested_output_names=["OUT"]).exec()
return response.error().message() if response.has_error() else response.output_tensors()[0].as_numpy()[0].decode()`
    expect(await run(server, recursion(2), "recursive")).toBe("end")
    expect(await run(server, recursion(3), "recursive")).toContain("the calls would wait for each other forever")
  })

  it("are refused in initialize, in finalize and in auto_complete_config", async () => {
    const fixture = await models()
    const code = (step: string) => `import triton_python_backend_utils as pb_utils
import numpy as np

def call():
    tensor = pb_utils.Tensor("INPUT0", np.zeros([1], dtype=np.float32))
    request = pb_utils.InferenceRequest(model_name="identity", inputs=[tensor], requested_output_names=[])
    return request.exec()

class TritonPythonModel:
    ${step}
    def execute(self, requests):
        return []
`
    fixture.write("bls_init/1/model.py", code("def initialize(self, args):\n        call()"))
    fixture.write("bls_init/config.pbtxt", `backend: "python" ${texts}`)
    fixture.write("bls_fini/1/model.py", code("def finalize(self):\n        call()"))
    fixture.write("bls_fini/config.pbtxt", `backend: "python" ${texts}`)
    fixture.write(
      "bls_complete/1/model.py",
      code("@staticmethod\n    def auto_complete_config(config):\n        call()\n        return config"),
    )
    fixture.write("bls_complete/config.pbtxt", `backend: "python" ${texts}`)
    const { index, log, stop } = await serve(fixture)
    const reasons = new Map((await index()).map(({ name, reason }) => [name, reason]))
    const only = "BLS is only supported during the 'execute' function."
    expect(reasons.get("bls_init")).toContain(only)
    expect(reasons.get("bls_complete")).toContain(only)
    expect(reasons.get("bls_fini")).not.toContain(only)
    await stop()
    expect(log()).toMatch(/finalize of instance 'bls_fini_0' failed: .*BLS is only supported/)
  })

  it("forward sequence flags, a timeout and parameters", async () => {
    const fixture = await models()
    fixture.write(
      "seen/1/model.py",
      `import json
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
`,
    )
    fixture.write("seen/config.pbtxt", `backend: "python" output { name: "OUT" data_type: TYPE_STRING dims: 1 }`)
    const server = await serve(fixture)
    const seen = `response = pb.InferenceRequest(model_name="seen", inputs=[], requested_output_names=[], request_id="id",
    correlation_id=5, flags=3, timeout=11000000000, parameters={"a": 1, "b": True, "c": "x"}).exec()
return response.output_tensors()[0].as_numpy()[0].decode() + response.parameters()`
    expect(await run(server, seen)).toBe(
      '["id", 5, 3, 11000000000, {"a": 1, "b": true, "c": "x"}]{"p":1,"q":true,"r":"s"}',
    )
  })
})

describe.skipIf(python === undefined)("traces", () => {
  it("of calls with the trace of a request are below its span, others begin a trace", async () => {
    const { tracer, only, named } = recorder()
    const fixture = await models()
    const { http } = await scoped(
      Layer.build(
        Server.layer([], { http: { host: "127.0.0.1", port: 0 }, grpc: false, metrics: false }).pipe(
          Layer.provide(Repository.layer({ directories: [fixture.path], exitOnError: false })),
          Layer.provide(Layer.succeed(Tracer.Tracer, tracer)),
        ),
      ).pipe(Effect.map((context) => Context.get(context, Server.Server))),
    )
    const call = async (more: string): Promise<string> => {
      const code = `${addSubRequest}request_of(${more}).exec()\nreturn request.trace().get_context()`
      const body = JSON.stringify({ inputs: [text("IN", code)] })
      const response = await fetch(`http://127.0.0.1:${http?.port}/v2/models/bls/infer`, { method: "POST", body })
      const { outputs } = (await response.json()) as JsonResponse
      return String(outputs?.[0]?.data[0])
    }
    const context = await call("trace=request.trace()")
    const caller = only("infer bls")
    expect(JSON.parse(context)).toEqual({ traceparent: `00-${caller.traceId}-${caller.spanId}-01` })
    const callee = only("infer add_sub")
    expect([callee.traceId, parentOf(callee)]).toEqual([caller.traceId, caller.spanId])
    await call("")
    const [, other] = named("infer add_sub")
    expect(other && parentOf(other)).toBe(undefined)
  })
})

describe.skipIf(python === undefined)("processes that the code forks", () => {
  it("call other models too", async () => {
    const server = await serve(await models())
    const code = `import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    return pool.map(self.forked, [1, 2, 3, 4])`
    expect(await run(server, code)).toBe("[10.0, 10.0, 10.0, 10.0]")
  })
})

describe.skipIf(python === undefined)("loading of other models", () => {
  it("load, override, unload and ask for readiness", async () => {
    const fixture = await models()
    const server = await serve(fixture, { control: "explicit", load: ["bls"] })
    const call = (code: string) => run(server, code)
    expect(await call('return pb.is_model_ready("bls")')).toBe("True")
    expect(await call('pb.load_model("add_sub")\nreturn pb.is_model_ready("add_sub", "1")')).toBe("True")
    expect(
      await call('pb.load_model("add_sub", config=json.dumps({"backend": "onnxruntime", "max_batch_size": 2}))'),
    ).toBe("None")
    expect(await server.config("add_sub")).toMatchObject({ max_batch_size: 2 })
    const content = Buffer.from(addSub("FP32", ["n", 4])).toString("hex")
    const files = `files = {"file:1/model.onnx": bytes.fromhex("${content}")}
pb.load_model("add_sub", '{"backend": "onnxruntime", "max_batch_size": 3}', files)
return pb.is_model_ready(model_name="add_sub")`
    expect(await call(files)).toBe("True")
    expect(await server.config("add_sub")).toMatchObject({ max_batch_size: 3 })
    expect(await call('pb.unload_model("add_sub")')).toBe("None")
    await expect.poll(() => call('return pb.is_model_ready("add_sub")')).toBe("False")
    const failure = (code: string) =>
      call(`try:
    ${code}
except pb.TritonModelException as error:
    return str(error)`)
    expect(await failure('pb.load_model("unknown")')).toMatch(
      /^Failed to load model: failed to load 'unknown', failed to poll/,
    )
    expect(await failure('pb.is_model_ready("unknown")')).toMatch(
      /^Failed to check model readiness: Request for unknown model: 'unknown' is not found/,
    )
    expect(await failure('pb.load_model("add_sub", files={"file:1/model.onnx": b""})')).toMatch(
      /^Failed to load model: /,
    )
  })

  it("are refused unless clients control the loads", async () => {
    const server = await serve(await models())
    const refused = (code: string) =>
      run(
        server,
        `try:
    ${code}
except pb.TritonModelException as error:
    return str(error)`,
      )
    const reason = "explicit model load / unload is not allowed if polling is enabled"
    expect(await refused('pb.load_model("add_sub")')).toBe(`Failed to load model: ${reason}`)
    expect(await refused('pb.unload_model("add_sub")')).toBe(`Failed to unload model: ${reason}`)
    expect(await run(server, 'return pb.is_model_ready("add_sub")')).toBe("True")
  })
})

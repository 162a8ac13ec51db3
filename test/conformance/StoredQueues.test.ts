/**
 * Repository models under several requests, by their configuration: requests that share a batch, and the statistics.
 */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  ModelReadyRequestSchema,
  ModelReadyResponseSchema,
  RepositoryModelLoadRequestSchema,
} from "@nereid/protocol/grpc_service"
import { Connections } from "./Connections.ts"
import { metric, until } from "./Counters.ts"
import { encode, frame } from "./GrpcEncoding.ts"
import { messages } from "./GrpcConnection.ts"
import { gatedExecution } from "./GatedExecution.ts"
import { hold } from "./HeldQueue.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { type InferRequest, type Tensor, tensor } from "./InferRequest.ts"
import { batches, statistics } from "./Statistics.ts"
import { warming, x } from "./StoredQueues.ts"
import { type InferMethod, inferMethods } from "./InferMethod.ts"

type Connected = Connections["Service"]

/** Loads the model, and says whether that went well. */
const loads = {
  "over HTTP": async (connections: Connected) => {
    // A connection answers its requests in order.
    const connection = await HttpConnection.open(connections.servers.queues.http)
    const { status } = await connection.request({ path: `/v2/repository/models/${warming}/load`, body: "" })
    connection.close()
    return status === 200
  },
  "over gRPC": async (connections: Connected) => {
    const request = create(RepositoryModelLoadRequestSchema, { modelName: warming })
    const chunks = [frame(toBinary(RepositoryModelLoadRequestSchema, request))]
    const { code } = await (await connections.grpc("queues")).call({ method: "RepositoryModelLoad", chunks })
    return code === 0
  },
}

const difference = (
  one: Awaited<ReturnType<typeof batches>>,
  other: Awaited<ReturnType<typeof batches>>,
): Awaited<ReturnType<typeof batches>> => ({
  rows: one.rows - other.rows,
  executions: one.executions - other.executions,
  sizes: Object.fromEntries(
    Object.entries(one.sizes)
      .map(([size, count]) => [size, count - (other.sizes[size] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  ),
})

/** Ways to one server. */
const methodOf = (name: string): InferMethod => {
  const found = inferMethods("queues", "queuesConnect").find(
    (method) => method.name === name && method.server === "queues",
  )
  if (found === undefined) throw new Error(`There is no way ${name}`)
  return found
}

const [json, binary, grpc, stream] = [
  methodOf("HTTP JSON"),
  methodOf("HTTP binary"),
  methodOf("gRPC"),
  methodOf("gRPC stream"),
]

layer(Connections.layerWithQueues, { excludeTestServices: true })("queues of a repository", (it) => {
  const live = (name: string, test: (connections: Connected) => Promise<void>) =>
    it.effect(name, () => Effect.flatMap(Connections, (connections) => Effect.promise(() => test(connections))))

  for (const method of inferMethods("queues", "queuesConnect")) {
    /** The increase of a model's statistics during a test. */
    const counting = async (connections: Connected, model: string, test: () => Promise<void>) => {
      const before = await batches(connections, model, method.server)
      await test()
      return difference(await batches(connections, model, method.server), before)
    }

    live(`${method.name}: a full queue refuses one more (C36)`, async (connections) => {
      const { wait, refuse, end } = await hold(connections, method, "bounded", x(1))
      await wait("waits")
      await refuse("more", {}, { tag: "QueueFull", error: "[request id: more] Exceeds maximum queue size" })
      assert.deepStrictEqual(await end(), { executions: [["waits"]], refused: 1, served: 2 })
    })

    // A11.batching.statistics@both
    live(`${method.name}: a batch has as many rows as fit, in their order (C36)`, async (connections) => {
      const counted = await counting(connections, "fills", async () => {
        const { wait, end } = await hold(connections, method, "fills", x(1))
        for (const [id, rows] of Object.entries({ a: 1, b: 2, c: 1, d: 3, e: 2, f: 4, g: 1 })) {
          await wait(id, {}, x(rows))
        }
        const { executions } = await end()
        assert.deepStrictEqual(executions, [["a", "b", "c"], ["d"], ["e"], ["f"], ["g"]])
      })
      assert.deepStrictEqual(counted, { rows: 15, executions: 6, sizes: { 1: 2, 2: 1, 3: 1, 4: 2 } })
    })

    live(`${method.name}: a batch is filled from the highest level down (C36)`, async (connections) => {
      const { wait, end } = await hold(connections, method, "fills_by_level", x(1))
      await wait("a")
      await wait("b", { priority: 2n })
      await wait("high", { priority: 1n })
      const { executions } = await end()
      assert.deepStrictEqual(executions, [["high", "a"], ["b"]])
    })

    live(`${method.name}: without a batch dimension there are levels, too (C36)`, async (connections) => {
      const { wait, end } = await hold(connections, method, "levels_without_batch", tensor("X", "INT32", [1], [7]))
      await wait("low")
      await wait("high", { priority: 1n })
      assert.deepStrictEqual(await end(), { executions: [["high"], ["low"]], refused: 0, served: 3 })
    })

    // A11.batching.preferred@both
    live(
      `${method.name}: batches have preferred sizes, and remaining requests wait for more (C36)`,
      async (connections) => {
        const counted = await counting(connections, "prefers", async () => {
          const { wait, end } = await hold(connections, method, "prefers", x(2))
          for (const id of ["a", "b", "c", "d", "e", "f", "g"]) await wait(id, {}, x(1))
          const responded = end()
          const pending = () => metric(connections, "nv_inference_pending_request_count", "prefers", "", method.server)
          await until(async () => (await pending()) === 1)
          const last = { model: "prefers", id: "last", inputs: [x(1)] }
          assert.deepStrictEqual(await method.infer(connections, last, { outputs: last.inputs }), [])
          const { executions } = await responded
          assert.deepStrictEqual(executions, [
            ["a", "b", "c", "d"],
            ["e", "f"],
            ["g", "last"],
          ])
        })
        assert.deepStrictEqual(counted, { rows: 10, executions: 4, sizes: { 2: 3, 4: 1 } })
      },
    )

    // A11.batching.delay@both
    live(`${method.name}: no request waits longer than the delay (C36)`, async (connections) => {
      const counted = await counting(connections, "hurries", async () => {
        const request = { model: "hurries", inputs: [x(1)] }
        assert.deepStrictEqual(await method.infer(connections, request, { outputs: request.inputs }), [])
      })
      assert.deepStrictEqual(counted, { rows: 1, executions: 1, sizes: { 1: 1 } })
    })

    // A11.batching.shapes@both
    live(`${method.name}: rows of other shapes form separate batches (C36)`, async (connections) => {
      const counted = await counting(connections, "shapes", async () => {
        const { wait, end } = await hold(connections, method, "shapes", x(1))
        await wait("one", {}, x(1, 1))
        await wait("one of it", {}, x(2, 1))
        await wait("two", {}, x(1, 2))
        await wait("two of it", {}, x(2, 2))
        await wait("one again", {}, x(1, 1))
        const { executions } = await end()
        assert.deepStrictEqual(executions, [["one", "one of it"], ["two", "two of it"], ["one again"]])
      })
      assert.deepStrictEqual(counted, { rows: 8, executions: 4, sizes: { 1: 2, 3: 2 } })
    })

    // A11.ragged.input@both
    live(`${method.name}: rows of any shapes share a batch where they may be ragged (C36)`, async (connections) => {
      const { wait, end } = await hold(connections, method, "shapes_ragged", x(1))
      await wait("one", {}, x(1, 1))
      await wait("three", {}, x(2, 3))
      await wait("none", {}, x(1, 0))
      const { executions } = await end()
      assert.deepStrictEqual(executions, [["one", "three", "none"]])
    })

    live(
      `${method.name}: groups of shapes wait for each other in ONNX Runtime if the model says so (C36)`,
      async (connections) => {
        const pending = () =>
          metric(connections, "nv_inference_pending_request_count", "onnx_gathers", "", method.server)
        const counted = await counting(connections, "onnx_gathers", async () => {
          const send = (columns: number) =>
            method.infer(
              connections,
              { model: "onnx_gathers", inputs: [x(1, columns)] },
              { outputs: [x(1, columns, "Y")] },
            )
          const first = send(1)
          await until(async () => (await pending()) === 1)
          const second = send(3)
          await until(async () => (await pending()) === 2)
          assert.deepStrictEqual((await Promise.all([first, send(1)])).flat(), [])
          assert.deepStrictEqual((await Promise.all([second, send(3)])).flat(), [])
        })
        assert.deepStrictEqual(counted, { rows: 4, executions: 2, sizes: { 2: 2 } })
      },
    )

    live(`${method.name}: without dynamic_batching every request is executed separately (C36)`, async (connections) => {
      const counted = await counting(connections, "alone", async () => {
        const { wait, end } = await hold(connections, method, "alone", x(1))
        await wait("a")
        await wait("b", {}, x(3))
        const { executions } = await end()
        assert.deepStrictEqual(executions, [["a"], ["b"]])
      })
      assert.deepStrictEqual(counted, { rows: 5, executions: 3, sizes: { 1: 2, 3: 1 } })
    })

    live(`${method.name}: so it is in ONNX Runtime (C36)`, async (connections) => {
      const counted = await counting(connections, "onnx_alone", async () => {
        const send = (rows: number) =>
          method.infer(connections, { model: "onnx_alone", inputs: [x(rows)] }, { outputs: [x(rows, 1, "Y")] })
        assert.deepStrictEqual((await Promise.all([1, 2, 1, 2].map(send))).flat(), [])
      })
      assert.deepStrictEqual(counted, { rows: 6, executions: 4, sizes: { 1: 2, 2: 2 } })
    })
  }

  for (const [name, load] of Object.entries(loads)) {
    // A11.warm-up.before@both
    live(`${name}: a model is not there before its warm-up has ended (C32, C36)`, async (connections) => {
      const [http, grpc] = await Promise.all([connections.http("queues"), connections.grpc("queues")])
      const state = async () => {
        const ready = await http.request({ path: `/v2/models/${warming}/ready` })
        const index = await http.request({ path: "/v2/repository/index", body: "" })
        const [entry] = new RegExp(`\\{"name":"${warming}"[^}]*\\}`).exec(index.body.toString()) ?? []
        const request = create(ModelReadyRequestSchema, { name: warming })
        const chunks = [frame(toBinary(ModelReadyRequestSchema, request))]
        const [reply] = messages((await grpc.call({ method: "ModelReady", chunks })).body)
        return [ready.status, entry, reply && fromBinary(ModelReadyResponseSchema, reply).ready]
      }
      const entry = (state: string) => `{"name":"${warming}","version":"1","state":"${state}","reason":""}`
      gatedExecution.executions = []
      const loaded = load(connections)
      await until(() => gatedExecution.ran.includes("hold"))
      assert.deepStrictEqual(await state(), [400, entry("LOADING"), false])
      gatedExecution.open()
      assert.strictEqual(await loaded, true)
      assert.deepStrictEqual(await state(), [200, entry("READY"), true])
      assert.deepStrictEqual(gatedExecution.executions, [["hold"]])
      const { inferenceStats, executionCount } = await statistics(connections, warming, "queues")
      assert.deepStrictEqual([inferenceStats?.success?.count, executionCount], [0n, 0n])
      await http.request({ path: `/v2/repository/models/${warming}/unload`, body: "" })
    })
  }

  live("responses of a decoupled model are counted one by one (C38)", async (connections) => {
    const connection = await connections.grpc("queues")
    for (const to of [2, 1, -1]) {
      const request = { model: "counts", inputs: [{ ...x(1), elements: [to] }] }
      const { code } = await connection.call({ method: "ModelStreamInfer", chunks: [encode(request, "gRPC stream")] })
      assert.strictEqual(code, 0)
    }
    const { responseStats, inferenceCount } = await statistics(connections, "counts", "queues")
    const counted = Object.entries(responseStats).map(([index, { success, fail, emptyResponse }]) => [
      index,
      ...[success, fail, emptyResponse].map((duration) => Number(duration?.count)),
    ])
    assert.strictEqual(inferenceCount, 2n)
    assert.deepStrictEqual(counted, [
      ["0", 3, 0, 0],
      ["1", 1, 1, 1],
      ["2", 0, 0, 1],
    ])
  })

  // A11.cache.hit@both, A11.cache.statistics@both
  live(
    "a response cache answers equal requests over any protocol without an execution (C36, C38)",
    async (connections) => {
      const metrics = (name: string) => metric(connections, name, "cached", "", "queues")
      const cached = async () => {
        const { inferenceStats, inferenceCount, executionCount } = await statistics(connections, "cached", "queues")
        const { success, fail, cacheHit, cacheMiss, computeInfer } = inferenceStats ?? {}
        assert.strictEqual(Number(cacheHit?.count), await metrics("nv_cache_num_hits_per_model"))
        assert.strictEqual(Number(cacheMiss?.count), await metrics("nv_cache_num_misses_per_model"))
        const durations = [success, fail, cacheHit, cacheMiss, computeInfer].map((duration) => Number(duration?.count))
        return [...durations, Number(inferenceCount), Number(executionCount)]
      }
      let executions = 0
      const infer = async (method: InferMethod, expected: "hit" | "miss", request: Partial<InferRequest> = {}) => {
        if (expected === "miss") executions += 1
        const { inputs = [x(2)] } = request
        const outputs = inputs.map((input) => ({ ...input, elements: input.elements.map(() => executions) }))
        assert.deepStrictEqual(
          await method.infer(connections, { model: "cached", inputs, ...request }, { outputs }),
          [],
        )
      }
      assert.deepStrictEqual(await cached(), [0, 0, 0, 0, 0, 0, 0])
      await infer(json, "miss")
      for (const method of [json, binary, grpc, stream]) {
        await infer(method, "hit")
        await infer(method, "hit", { id: method.name, parameters: { priority: 1n, timeout: 5n } })
      }
      assert.deepStrictEqual(await cached(), [9, 0, 8, 1, 1, 18, 1])
      for (const method of [json, binary, grpc, stream]) {
        const by = { [method.name]: true }
        await infer(method, "miss", { inputs: [{ ...x(1), elements: [-executions] }] })
        await infer(method, "miss", { parameters: by })
        await infer(method, "hit", { parameters: by })
      }
      await infer(grpc, "miss", { inputs: [x(1)] })
      assert.deepStrictEqual(await cached(), [22, 0, 12, 10, 10, 39, 10])
      const failing = { model: "cached", parameters: { fail: true }, inputs: [x(1)] }
      for (const method of [json, grpc]) {
        const failed = { tag: "ExecutionFailed", error: /as it was asked to$/ } as const
        assert.deepStrictEqual(await method.infer(connections, failing, failed), [])
      }
      assert.deepStrictEqual(await cached(), [22, 2, 12, 10, 10, 39, 10])
      assert.isNaN(await metric(connections, "nv_cache_num_hits_per_model", "fills", "", "queues"))
    },
  )

  live("of an ONNX file, whatever the parameters are (C36)", async (connections) => {
    const request = { model: "onnx_cached", inputs: [x(2)] }
    const outputs = [x(2, 1, "Y")]
    for (const method of [stream, binary, grpc, json]) {
      const parameters = { [method.name]: 1n }
      assert.deepStrictEqual(await method.infer(connections, { ...request, parameters }, { outputs }), [])
    }
    const { executionCount, inferenceStats } = await statistics(connections, "onnx_cached", "queues")
    assert.deepStrictEqual([executionCount, inferenceStats?.cacheHit?.count], [1n, 3n])
  })

  /** Sends equal requests in sequence over each protocol, for one execution. */
  const together = async (
    connections: Connected,
    model: string,
    requests: ReadonlyArray<{ readonly input: Tensor; readonly outputs: ReadonlyArray<Tensor> }>,
  ) => {
    const pending = () => metric(connections, "nv_inference_pending_request_count", model, "", "queues")
    const responses: Array<Promise<ReadonlyArray<string>>> = []
    for (const [index, { input, outputs }] of requests.entries()) {
      const method = [json, binary, grpc, stream][index] ?? grpc
      responses.push(method.infer(connections, { model, inputs: [input] }, { outputs }))
      if (responses.length < requests.length) await until(async () => (await pending()) === responses.length)
    }
    assert.deepStrictEqual((await Promise.all(responses)).flat(), [])
    const { executionCount } = await statistics(connections, model, "queues")
    assert.strictEqual(executionCount, 1n)
  }

  const floats = (name: string, shape: ReadonlyArray<number>, elements: ReadonlyArray<number>) =>
    tensor(name, "FP32", shape, elements)

  // A11.ragged.kinds@both, A11.ragged.output@both
  live("every batch input kind describes the requests of a ragged batch (C36)", async (connections) => {
    const request = (shape: readonly [number, number], begin: number, elements: ReadonlyArray<number>) => {
      const number = (name: string, value: number) => tensor(name, "INT32", [1, 1], [value])
      return {
        input: floats("X", [1, ...shape], elements),
        outputs: [
          floats(
            "Y",
            [1, ...shape],
            elements.map((element) => element * 2),
          ),
          tensor("SHAPES", "INT32", [1, 2], shape),
          number("COUNTS", elements.length),
          number("ENDS", begin + elements.length),
          number("BEGINS", begin),
          tensor("MOSTS", "INT64", [1, 1], [6n]),
          floats("FLATS", [1, 2], shape),
        ],
      }
    }
    await together(connections, "onnx_ragged", [
      request([2, 1], 0, [1, 2]),
      request([3, 2], 2, [3, 4, 5, 6, 7, 8]),
      request([0, 5], 8, []),
      request([1, 3], 8, [9, 10, 11]),
    ])
  })

  live("each row of a ragged batch has a shape, whosever it is (C36)", async (connections) => {
    await together(connections, "onnx_ragged_rows", [
      {
        input: floats("X", [2, 1, 2], [1, 2, 3, 4]),
        outputs: [floats("Y", [2, 1, 2], [2, 4, 6, 8]), tensor("SHAPES", "INT32", [2, 2], [1, 2, 1, 2])],
      },
      {
        input: floats("X", [1, 3, 1], [5, 6, 7]),
        outputs: [floats("Y", [1, 3, 1], [10, 12, 14]), tensor("SHAPES", "INT32", [1, 2], [3, 1])],
      },
    ])
  })
})

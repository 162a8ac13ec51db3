/** Server behavior over several requests: counters, full queues, and disconnected clients. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { Connections } from "./Connections.ts"
import { counters, metric, until } from "./Counters.ts"
import { encode as encodeGrpc } from "./GrpcEncoding.ts"
import { HttpConnection } from "./HttpConnection.ts"
import { encode as encodeHttp } from "./HttpEncoding.ts"
import { type InferRequest, tensor } from "./InferRequest.ts"
import * as Models from "./Models.ts"

type Connected = Connections["Service"]

const stuck: InferRequest = { model: "stuck", inputs: [tensor("X", "INT32", [1], [1])] }

layer(Connections.layer, { excludeTestServices: true })("operations", (it) => {
  const live = (name: string, test: (connections: Connected) => Promise<void>) =>
    it.effect(name, () => Effect.flatMap(Connections, (connections) => Effect.promise(() => test(connections))))

  live("counts successes, rows, executions and failures alike in statistics and metrics (C38)", async (connections) => {
    const http = await connections.http("normal")
    const infer = (
      model: string,
      name: string,
      datatype: string,
      shape: ReadonlyArray<number>,
      elements: ReadonlyArray<string | number>,
    ) => http.request(encodeHttp({ model, inputs: [tensor(name, datatype, shape, elements)] }, "HTTP JSON"))
    await infer("batched_fp32", "X", "FP32", [1, 2], [1, 2])
    await infer("batched_fp32", "X", "FP32", [3, 1], [1, 2, 3])
    await infer("batched_fp32", "X", "INT32", [1, 1], [1])
    await infer("batched_fp32", "Y", "FP32", [1, 1], [1])
    assert.deepStrictEqual(await counters(connections, "batched_fp32"), {
      success: 2,
      rows: 4,
      executions: 2,
      reasons: [0, 0, 0, 2],
    })
    await infer("fail", "TAG", "BYTES", [1], ["x"])
    assert.deepStrictEqual(await counters(connections, "fail"), {
      success: 0,
      rows: 0,
      executions: 0,
      reasons: [0, 0, 1, 0],
    })
  })

  live("requests at the same time share executions (C36)", async (connections) => {
    const http = await connections.http("normal")
    const request: InferRequest = { model: "gathers", inputs: [tensor("X", "INT32", [1, 1], [7])] }
    const responses = await Promise.all([1, 2, 3, 4].map(() => http.request(encodeHttp(request, "HTTP JSON"))))
    assert.deepStrictEqual(
      responses.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    const { success, rows, executions } = await counters(connections, "gathers")
    assert.deepStrictEqual([success, rows, executions], [4, 4, 1])
  })

  live(
    "a full queue refuses at once, over both protocols; who goes away is counted as CANCELED (C36, C28)",
    async (connections) => {
      const waiting = () => metric(connections, "nv_inference_pending_request_count", "stuck")
      const { http: port } = connections.servers.normal
      const body = encodeHttp(stuck, "HTTP JSON")
      const [runs, queued] = await Promise.all([HttpConnection.open(port), HttpConnection.open(port)])
      const gone: Array<Promise<string>> = []
      const infer = (connection: HttpConnection) =>
        gone.push(
          connection.request(body).then(
            () => "answered",
            () => "gone",
          ),
        )
      infer(runs)
      await until(() => Models.stuck.entered === 1)
      infer(queued)
      await until(async () => (await waiting()) === 1)

      const refused = await (await connections.http("normal")).request(body)
      assert.deepStrictEqual(
        [refused.status, refused.body.toString()],
        [503, '{"error":"[request id: <id_unknown>] Exceeds maximum queue size"}'],
      )
      const overGrpc = await (await connections.grpc("normal")).call({ chunks: [encodeGrpc(stuck, "gRPC raw")] })
      assert.deepStrictEqual([overGrpc.code, overGrpc.tag], [14, "QueueFull"])

      runs.close()
      queued.close()
      assert.deepStrictEqual(await Promise.all(gone), ["gone", "gone"])
      const cancelled = () => metric(connections, "nv_inference_request_failure", "stuck", ',reason="CANCELED"')
      await until(async () => (await cancelled()) === 2)
      assert.deepStrictEqual((await counters(connections, "stuck")).reasons, [2, 2, 0, 0])
    },
  )
})

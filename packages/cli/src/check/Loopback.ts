/**
 * Starts a server in this process, on free ports of the loopback interface, and calls it over each protocol with our
 * client.
 */
import { Client } from "@nereid/client"
import { Model, Tensor } from "@nereid/core"
import { Server } from "@nereid/server"
import type { Finding } from "./Finding.ts"
import { isExpected, print, testInputs } from "./TestRequest.ts"
import { errorMessage } from "@nereid/core/internal/error/ErrorMessage"

class AddSub extends Model.Service<AddSub>()("add_sub", {
  inputs: { a: Tensor.FP32(1), b: Tensor.FP32(1) },
  outputs: { add: Tensor.FP32(1), sub: Tensor.FP32(1) },
  maxBatchSize: 8,
}) {}

const AddSubLive = Model.batch(AddSub, ({ a, b }) => ({
  add: Tensor.zipWith(a, b, (one, other) => one + other),
  sub: Tensor.zipWith(a, b, (one, other) => one - other),
}))

const host = "127.0.0.1"
const free = { host, port: 0 }

/** Rejects where the server does not start. */
export const check = async (timeout: number): Promise<ReadonlyArray<Finding>> => {
  const options = { http: free, grpc: free, metrics: false, logging: { info: false } } as const
  const server = await Server.start([AddSub], AddSubLive, options)
  try {
    return [
      await call("HTTP", `http://${host}:${server.http.port}`, timeout),
      await call("gRPC", `grpc://${host}:${server.grpc.port}`, timeout),
    ]
  } finally {
    await server.stop()
  }
}

const call = async (name: string, url: string, timeout: number): Promise<Finding> => {
  const model = await Client.connect(AddSub, { url })
  try {
    const rows = (elements: ReadonlyArray<number>) =>
      Tensor.make("FP32", [elements.length, 1], Float32Array.from(elements))
    const sent = performance.now()
    const { add, sub } = await model.inferBatch({ a: rows(testInputs.a), b: rows(testInputs.b) }, { timeout })
    const milliseconds = Math.round((performance.now() - sent) * 10) / 10
    const outputs = { add: [...add.data], sub: [...sub.data] }
    const message = `${url}: ${print(outputs)} in ${milliseconds} ms`
    const details = { url, ...outputs, milliseconds }
    return { name, status: isExpected(outputs) ? "ok" : "failed", message, details }
  } catch (error) {
    const message = `${url}: ${errorMessage(error)}`
    return { name, status: "failed", message, details: { url } }
  } finally {
    await model.close()
  }
}

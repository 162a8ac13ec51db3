/**
 * A program that serves models with fastify and onnxruntime-node, run as a child: JSON only, one run for each request,
 * on the thread of the event loop. It runs only where fastify is installed.
 */
import type { AddressInfo, Server } from "node:net"
import * as Naive from "./Naive.ts"
import { report } from "./Reporter.ts"

/** The part of fastify that this program needs; fastify is no dependency of this repository. */
interface Fastify {
  readonly server: Server
  readonly post: (
    path: string,
    handler: (request: { readonly body: { readonly inputs: ReadonlyArray<Naive.JsonTensor> } }) => Promise<object>,
  ) => void
  readonly listen: (options: { readonly host: string; readonly port: number }) => Promise<unknown>
}

const name = "fastify"
const { default: fastify }: { readonly default: () => Fastify } = await import(name)
const app = fastify()
for (const [model, run] of [
  ["digits", await Naive.digits()],
  ["sentiment", await Naive.sentiment()],
] as const) {
  app.post(`/v2/models/${model}/infer`, async ({ body }) => ({
    model_name: model,
    model_version: "1",
    outputs: await run(body.inputs),
  }))
}
await app.listen({ host: "127.0.0.1", port: 0 })
report({ ports: { grpc: 0, http: (app.server.address() as AddressInfo).port } })
